#!/bin/sh
# Leave printable versions of pages out, by their URLs.
#
#     kumo crawl --filter examples/filters/no_print.sh https://example.com/
#
# It needs only sed (GNU or BSD), with -u to answer line by line. The lines are described in docs/reference/filters.md:
# a line begins with the id, and the URL precedes everything that a page can set. Slashes and quotes are escaped as in
# JSON.
read -r hello
echo '{"points":["request"]}'
exec sed -u -E \
  -e 's|^\{"id":([0-9]+),"point":"request","url":"[^"]*([/?&](print\|version=print)[/"&=])[^}]*\}$|{"id":\1,"drop":"a printable version"}|' \
  -e t \
  -e 's|^\{"id":([0-9]+),.*|{"id":\1}|'
