// What the pages do beyond links and forms, all of which work without it.
"use strict";

(() => {
  const SUITS = { heart: "♥", diamond: "♦", spade: "♠", club: "♣" };
  const CHART_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "text-anchor",
    "font-family", "font-size", "font-weight"];
  const main = () => document.getElementById("main");

  // Put the main part of another page in the place of this one's, and keep the focus where it was.
  async function swap(address, options, keepAddress) {
    const focused = document.activeElement && document.activeElement.id;
    const answer = await fetch(address, { ...options, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (!fresh) { location.reload(); return; }
    main().replaceWith(fresh);
    document.title = page.title;
    if (!keepAddress) history.pushState(null, "", answer.url);
    const next = (focused && document.getElementById(focused)) || fresh.querySelector("[data-focus]") || fresh;
    next.focus({ preventScroll: true });
    begin();
  }

  let busy = false;
  async function once(work) {
    if (busy) return;
    busy = true;
    try { await work(); } catch { location.reload(); } finally { busy = false; }
  }

  // What is asked before the form of a button is sent: a question, for some only from a size on.
  const question = (button) => button && !(Number(button.form.elements.size?.value) < button.dataset.askFrom) && button.dataset.ask;

  document.addEventListener("submit", (event) => {
    const form = event.target, asked = question(event.submitter);
    if (asked && !confirm(asked)) { event.preventDefault(); return; }
    if (!form.matches("[data-swap]")) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    const target = form.getAttribute("action");  // form.action may be a button of that name
    once(() => form.getAttribute("method") === "post"
      ? swap(target, { method: "POST", body: fields }, true)
      : swap(`${target}?${fields}`, {}));
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-swap]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    once(() => swap(link.href, {}));
  });

  window.addEventListener("popstate", () => once(() => swap(location.href, {}, true)));

  // A slider and the number beside it show one size; the slider has the sizes of its list, each larger by the same factor.
  const steps = (slider) => slider.dataset.steps.split(" ");
  document.addEventListener("input", (event) => {
    const box = event.target;
    const follows = box.dataset.follows && document.getElementById(box.dataset.follows);
    if (follows) follows.value = steps(box)[box.value];
    const slider = follows ? box : box.id && document.querySelector(`[data-follows="${box.id}"]`);
    if (!slider) return;
    const size = Number((follows || box).value);
    const above = steps(slider).findIndex((step) => Number(step) >= size);
    slider.value = above < 0 ? slider.max : above;
    slider.setAttribute("aria-valuetext", size);
  });

  // One letter or digit is one button; arrows move on the grid.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const button = /^[a-z0-9]$/i.test(event.key) && main().querySelector(`[data-key="${event.key.toLowerCase()}"]`);
    if (button) {
      event.preventDefault();
      button.click();
      return;
    }
    const cell = event.target.closest("[data-row]");
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!cell || !step) return;
    event.preventDefault();
    let row = Number(cell.dataset.row), column = Number(cell.dataset.column);
    for (;;) {
      row += step[0];
      column += step[1];
      const place = cell.closest("[data-grid]").querySelector(`[data-place="${row} ${column}"]`);
      if (!place) return;
      if (place.matches("[data-row]")) { focusCell(place); return; }
    }
  });

  function focusCell(cell) {
    for (const other of cell.closest("[data-grid]").querySelectorAll('[data-row][tabindex="0"]')) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }

  // Cards of a board are sent as soon as there are enough of them.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-cards]");
    if (!form) return;
    const chosen = form.querySelectorAll("input:checked:enabled").length, enough = Number(form.dataset.cards);
    if (chosen === enough) form.requestSubmit();
  });

  // Ranges are painted on a grid. The server reads the text; a painted kind has one weight for all its hands, and the other
  // kinds stay as they were written.
  let painting = null;  // whether a stroke adds kinds or takes them away

  // Show what is wrong with a field beside it.
  function tell(field, sentence) {
    document.getElementById(`mistake-${field.id}`).textContent = sentence;
    if (sentence) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
  }

  async function showRange(text) {
    const asked = text.value, grid = document.querySelector(`[data-paint="${text.id}"]`);
    const answer = await fetch(`/api/range?text=${encodeURIComponent(asked)}`);
    const said = await answer.json();
    if (text.value !== asked) return;  // written on meanwhile
    tell(text, answer.ok ? "" : said.error);
    if (!answer.ok) return;
    for (const cell of grid.querySelectorAll("[data-kind]")) {
      const kind = said[cell.dataset.kind];
      cell.dataset.text = kind ? kind.text : "";
      cell.setAttribute("aria-pressed", !kind ? "false" : kind.weight === 1 ? "true" : "mixed");
    }
    grid.hidden = document.querySelector(`[data-brush="${text.id}"]`).hidden = false;
  }

  // What a stroke writes for a kind: the kind, with the weight of the brush if that is not all.
  function stroke(cell) {
    const brush = document.querySelector(`[data-brush="${cell.closest("[data-paint]").dataset.paint}"]`);
    const weight = Math.min(Math.max(Number(brush.querySelector("[data-weight]").value) || 100, 1), 100);
    return weight === 100 ? cell.dataset.kind : `${cell.dataset.kind}:${weight / 100}`;
  }

  function paint(cell) {
    const grid = cell.closest("[data-paint]"), text = document.getElementById(grid.dataset.paint);
    cell.dataset.text = painting ? stroke(cell) : "";
    cell.setAttribute("aria-pressed", cell.dataset.text.includes(":") ? "mixed" : String(painting));
    text.value = [...grid.querySelectorAll("[data-kind]")].map((one) => one.dataset.text).filter(Boolean).join(",");
    tell(text, "");
  }

  const turned = (cell) => cell.dataset.text !== stroke(cell);

  const painted = (event) => event.target.closest("[data-paint] [data-kind]");
  let pointer = "";  // the kind that was last pressed: a mouse paints while it is drawn over cells, a swipe scrolls the page
  document.addEventListener("pointerdown", (event) => {
    const cell = painted(event);
    pointer = event.pointerType;
    if (!cell || event.button || pointer !== "mouse") return;
    event.target.releasePointerCapture(event.pointerId);
    painting = turned(cell);
    paint(cell);
  });
  document.addEventListener("pointerover", (event) => {
    const cell = painted(event);
    if (cell && painting !== null) paint(cell);
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { painting = null; });
  document.addEventListener("click", (event) => {  // a tap, or a key, which has no detail
    const cell = painted(event);
    if (!cell || (event.detail && pointer === "mouse")) return;
    painting = turned(cell);
    paint(cell);
    painting = null;
  });
  document.addEventListener("input", (event) => { if (event.target.matches("[data-range]")) showRange(event.target); });

  document.addEventListener("change", (event) => {
    const preset = event.target, text = preset.value && document.getElementById(preset.dataset.preset);
    if (!text) return;
    text.value = preset.value;
    preset.value = "";
    showRange(text);
  });

  // Say what a spot of the form would take, a moment after the last change.
  let asked = 0;
  function showSize(form) {
    clearTimeout(asked);
    asked = setTimeout(async () => {
      const answer = await fetch("/spots/size", { method: "POST", body: new URLSearchParams(new FormData(form)) });
      form.querySelector("[data-size]").textContent = await answer.text();
    }, 300);
  }
  for (const kind of ["input", "change", "click"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest("form:has([data-size])");
      if (form) showSize(form);
    });
  }

  // Send a file of a solved spot, and show the spot.
  document.addEventListener("change", async (event) => {
    const field = event.target, file = field.closest("[data-upload]") && field.files[0];
    if (!file) return;
    const name = file.name.replace(/\.json$/, "");
    const options = { method: "PUT", body: file, headers: { "Content-Type": "application/json" } };
    const answer = await fetch(`/api/spots/${encodeURIComponent(name)}`, options);
    const said = await answer.json();
    if (answer.ok) location.assign(`/spots/${said.name}`); else tell(field, said.error);
  });

  // A chart as an image by itself, with the styles that it has on the page.
  async function chartImage(chart) {
    const copy = chart.cloneNode(true), parts = [chart, ...chart.querySelectorAll("*")], box = chart.getBoundingClientRect();
    [copy, ...copy.querySelectorAll("*")].forEach((part, place) => {
      const style = getComputedStyle(parts[place]);
      for (const name of CHART_STYLES) part.setAttribute(name, style.getPropertyValue(name));
    });
    copy.setAttribute("width", 2 * box.width);
    copy.setAttribute("height", 2 * box.height);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    return image;
  }

  // A grid, the table of next cards or a chart as the page shows it, at twice its size.
  async function picture(shown) {
    const all = shown.getBoundingClientRect(), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    canvas.width = 2 * all.width;
    canvas.height = 2 * all.height;
    pen.scale(2, 2);
    pen.translate(-all.left, -all.top);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const fill = (colour, box) => {
      pen.fillStyle = colour;
      pen.fillRect(box.left, box.top, box.width, box.height);
    };
    fill(getComputedStyle(shown.closest(".panel")).backgroundColor, all);
    if (shown.matches("svg")) pen.drawImage(await chartImage(shown), all.left, all.top, all.width, all.height);
    else for (const part of shown.querySelectorAll("td, .cell, .pip, .pip svg, rect, span, i")) {
      const box = part.getBoundingClientRect(), style = getComputedStyle(part), bar = part.matches("rect");
      pen.globalAlpha = bar ? style.opacity * getComputedStyle(part.closest("svg")).opacity : 1;
      if (bar || part.matches(".cell, .pip")) fill(bar ? style.fill : style.backgroundColor, box);
      if (part.matches("td")) fill(style.borderBottomColor, new DOMRect(box.left, box.bottom - 1, box.width, 1));
      pen.strokeStyle = style.borderBottomColor;
      if (part.matches(".pip")) pen.strokeRect(box.left, box.top, box.width, box.height);
      const suit = part.matches(".pip svg") && SUITS[part.parentElement.classList[1]];
      if (bar || part.matches("td") || (part.firstElementChild && !suit)) continue;
      pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      pen.fillStyle = style.color;
      pen.fillText(suit || part.textContent, box.left + box.width / 2, box.top + box.height / 2);
    }
    return canvas;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-picture]");
    if (!button) return;
    const shown = button.parentElement.previousElementSibling;
    (await picture(shown.querySelector("table") ?? shown)).toBlob((image) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(image);
      link.download = `${document.title} ${button.dataset.picture}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  });

  // Read a file of hands into the field for them.
  document.addEventListener("change", async (event) => {
    const file = event.target.matches("[data-read]") && event.target.files[0];
    if (file) document.getElementById(event.target.dataset.read).value = await file.text();
  });

  async function load(place) {
    const answer = await fetch(place.dataset.load);
    if (answer.ok) place.innerHTML = await answer.text();
  }

  // Show how far the server is, and the result when it is there.
  async function look(place) {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    const fresh = page.querySelector("[data-wait] [data-progress]");
    if (!fresh) { location.reload(); return; }
    place.querySelector("[data-progress]").replaceWith(fresh);
    setTimeout(() => look(place), Number(place.dataset.wait));
  }

  function begin() {
    for (const place of document.querySelectorAll("[data-load]")) load(place);
    for (const place of document.querySelectorAll("[data-wait]")) setTimeout(() => look(place), Number(place.dataset.wait));
    for (const text of document.querySelectorAll("[data-range]")) if (!text.matches("[aria-invalid]")) showRange(text);
    for (const form of document.querySelectorAll("[data-upload]")) form.hidden = false;
    for (const place of document.querySelectorAll("[data-size]")) showSize(place.closest("form"));
    for (const grid of document.querySelectorAll("[data-grid]")) {
      const cells = [...grid.querySelectorAll("[data-row]")];
      const first = cells.find((cell) => cell.getAttribute("aria-current")) || cells[0];
      for (const cell of cells) cell.tabIndex = cell === first ? 0 : -1;
    }
  }

  begin();
})();
