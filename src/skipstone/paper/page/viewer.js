// The report's viewer: choose one of the recorded examples and replay it.

class Viewer extends Player {
  constructor(root, examples) {
    super(root);
    this.examples = examples;
    this.summary = root.querySelector("#task-summary");
    const list = root.querySelector(".tasks");
    this.tabs = examples.map((example) => list.appendChild(element("button", "", example.task)));
    this.tabs.forEach((tab, index) =>
      tab.addEventListener("click", (event) => {
        this.select(index);
        // The space bar is the focused button's; after a click people mean it to play.
        if (event.detail > 0) tab.blur();
      }),
    );
    this.select(0);
  }

  // At rest an example shows its end, where all of it can be seen.
  select(which) {
    const named = this.examples.findIndex((example) => example.task === which);
    const index = typeof which === "number" ? which : named;
    const example = this.examples[index];
    this.tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", String(i === index)));
    setText(this.summary, example.summary);
    this.open(example, this.frame === null ? example.end : example.start);
  }
}

// Some browsers do not play videos from data addresses; all play them from memory.
function loadVideo(video) {
  const [head, content] = video.src.split(",");
  const type = head.slice("data:".length, head.indexOf(";"));
  // Phones show a first picture only when asked for a moment after the start.
  video.src = `${URL.createObjectURL(new Blob([bytesOf(content)], { type }))}#t=0.001`;
}

document.querySelectorAll('video[src^="data:"]').forEach(loadVideo);
const data = document.getElementById("examples");
if (data) {
  const examples = JSON.parse(data.textContent).map(readExample);
  const viewer = new Viewer(document.getElementById("viewer"), examples);
  // For scripts and tests.
  window.viewer = {
    play: () => viewer.play(),
    pause: () => viewer.pause(),
    seek: (time) => viewer.seek(time),
    select: (which) => viewer.select(which),
    time: () => viewer.time,
  };
}
