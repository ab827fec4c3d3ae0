#!/bin/sh
# Leave printable versions of pages out, by their URLs.
#
#     kumo crawl --filter examples/filters/no_print.sh https://example.com/
#
# It needs sed alone (GNU or BSD): -u has it answer line by line. docs/reference/filters.md says what the lines are. A line begins
# with the id, and has the URL before all that a page could have put there; slashes and quotes are as JSON has them.
read -r hello
echo '{"points":["request"]}'
exec sed -u -E \
  -e 's|^\{"id":([0-9]+),"point":"request","url":"[^"]*([/?&](print\|version=print)[/"&=])[^}]*\}$|{"id":\1,"drop":"a printable version"}|' \
  -e t \
  -e 's|^\{"id":([0-9]+),.*|{"id":\1}|'
