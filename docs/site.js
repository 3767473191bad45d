// Tables as screen readers and keyboards need them: an empty head cell is no heading, a wide table can be scrolled.
window.addEventListener("load", () => {
  document.querySelectorAll(".md-typeset th").forEach((cell) => {
    if (!cell.textContent.trim()) cell.replaceWith(document.createElement("td"));
  });
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((box) => { box.tabIndex = 0; });
});
