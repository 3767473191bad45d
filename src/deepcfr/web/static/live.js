// Keeps the page of a run in training up to date: asks for new lines of its metrics, and then for the page itself.
"use strict";
{
  const shown = document.querySelector("[data-feeds]");
  const feeds = shown ? JSON.parse(shown.dataset.feeds) : [];
  const SHORTEST = 2000, LONGEST = 60000;
  let pause = SHORTEST;
  let due = false;

  async function hasNews(feed) {
    const answer = await fetch(`${feed.address}?after=${feed.next}`);
    if (!answer.ok) throw new Error(answer.statusText);
    const { lines, next, finished } = await answer.json();
    Object.assign(feed, { next, finished });
    return lines.length > 0;
  }

  // what is being read or pointed at stays as it is until it is left
  const inUse = (element) => element.matches(":hover, :focus-within");

  async function redraw() {
    const text = await (await fetch(location.href)).text();
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const old = new Map([...shown.querySelectorAll("[data-live]")].map((element) => [element.dataset.live, element]));
    let left = false;
    for (const element of fresh.querySelectorAll("[data-live]")) {
      const place = old.get(element.dataset.live);
      if (!place) shown.querySelector(".charts").append(element);
      else if (inUse(place)) left = true;
      else place.replaceWith(element);
    }
    return left;
  }

  async function poll() {
    try {
      if (!document.hidden) {
        const going = feeds.filter((feed) => !feed.finished);
        const news = await Promise.all(going.map(hasNews));
        if (due || news.includes(true)) due = await redraw();
        pause = SHORTEST;
      }
    } catch {
      pause = Math.min(2 * pause, LONGEST);  // the server is away, and may come back
    }
    if (due || feeds.some((feed) => !feed.finished)) setTimeout(poll, pause);
  }

  if (feeds.length) setTimeout(poll, SHORTEST);
}
