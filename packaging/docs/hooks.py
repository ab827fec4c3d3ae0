"""Replace links to files of the source tree, which have no page on the site, by the file's name."""

import posixpath
import re

LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, files):
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match):
        target = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        if target.startswith("docs/"):
            return match[0]
        text = match[1].strip("`")
        return f"`{target}`" if text == target else f"{match[1]} (`{target}`)"

    return LINK.sub(replace, markdown)


ORDER = ["Tutorials", "How to", "Reference", "Explanation", "Decisions"]


def on_nav(nav, config, files):
    """Order the sections by the needs of a reader; the index page is first."""
    nav.items.sort(key=lambda item: ORDER.index(item.title) if item.title in ORDER else -1)
    return nav
