// Tables as screen readers and keyboards need them: an empty head cell is no heading, a wide table can be scrolled.
window.addEventListener("load", () => {
  document.querySelectorAll(".md-typeset th").forEach((cell) => {
    if (!cell.textContent.trim()) cell.replaceWith(document.createElement("td"));
  });
  // Browsers let no page of a folder read the index of the search.
  if (location.protocol === "file:") {
    const note = document.createElement("p");
    note.textContent = "Search works when this site is served: make site-serve.";
    document.querySelector(".md-content__inner")?.prepend(note);
  }
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((box) => { box.tabIndex = 0; });
});
