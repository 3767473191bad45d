// Sort a table by the column whose button is pressed: once in descending order, once more in ascending order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.ariaSort !== "descending";
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)], [p, q] = [Number(x), Number(y)];
      if (x === "" || y === "") return (x === "") - (y === ""); // rows without a value stay last
      const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
      return down ? -order : order;
    };
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.ariaSort = down ? "descending" : "ascending";
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }));
}
