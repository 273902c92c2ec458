// The page: two tabs, each with a player.

function makeTabs(list, opened) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const choose = (chosen, focus) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panel(tab).hidden = tab !== chosen;
    }
    if (focus) chosen.focus();
    opened(panel(chosen).id);
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way) return;
      event.preventDefault();
      choose(tabs[(i + way + tabs.length) % tabs.length], true);
    });
  });
}

const content = JSON.parse(document.getElementById("playground").textContent);
const [arena, pool] = [
  [Arena, "arena"],
  [Pool, "pool"],
].map(([Kind, id]) => {
  const { scene, models } = content[id];
  return new Kind(document.getElementById(id), { scene, models: models.map(readModel) });
});
makeTabs(document.querySelector("[role=tablist]"), (id) => {
  for (const player of [arena, pool]) if (player.root.id !== id) player.pause();
});
// For scripts and tests.
window.playground = { arena, pool, readModel, simulate, positionsAt, closestTo, planShot };
