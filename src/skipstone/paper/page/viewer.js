// The viewer: choose an example, play it, scrub it. Time is the only state that pictures depend on.

const SECONDS = 12; // How long a replay takes at speed 1.
const LONGEST_FRAME = 100; // In milliseconds.

class Viewer {
  constructor(root, examples) {
    const find = (selector) => root.querySelector(selector);
    this.root = root;
    this.examples = examples;
    this.parts = {
      button: find(".play"),
      clock: find(".clock"),
      grid: find(".panels"),
      scrubber: find(".scrubber"),
      speed: find(".speed select"),
      summary: find("#task-summary"),
    };
    // Tells of every panel when it first has a size, and when that changes.
    this.sizes = new ResizeObserver(() => this.show());
    this.frame = null; // The next frame of the animation, while it plays.
    this.tabs = examples.map((example) => find(".tasks").appendChild(element("button", "", example.task)));
    this.listen();
    this.select(0);
  }

  listen() {
    const { button, scrubber } = this.parts;
    this.tabs.forEach((tab, index) =>
      tab.addEventListener("click", (event) => {
        this.select(index);
        // The space bar is the focused button's; after a click people mean it to play.
        if (event.detail > 0) tab.blur();
      }),
    );
    button.addEventListener("click", () => this.toggle());
    scrubber.addEventListener("input", () => {
      this.pause();
      this.seek(scrubber.value);
    });
    document.addEventListener("keydown", (event) => this.press(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.relook());
  }

  // At rest an example shows its end, where all of it can be seen.
  select(which) {
    const named = this.examples.findIndex((example) => example.task === which);
    const index = typeof which === "number" ? which : named;
    const example = (this.example = this.examples[index]);
    const { grid, scrubber, summary } = this.parts;
    this.tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", String(i === index)));
    setText(summary, example.summary);
    this.panels = example.tracks.map((track) => makePanel(example, track));
    grid.dataset.count = this.panels.length;
    grid.replaceChildren(...this.panels.map((panel) => panel.figure), makeKey(example));
    [scrubber.min, scrubber.max] = [example.start, example.end];
    this.time = this.frame === null ? example.end : example.start;
    this.sizes.disconnect();
    for (const panel of this.panels) this.sizes.observe(panel.canvas);
    this.relook();
  }

  relook() {
    for (const panel of this.panels) panel.look = readLook(panel.figure);
    this.show();
  }

  show() {
    const { clock, scrubber } = this.parts;
    for (const panel of this.panels) paintPanel(panel, this.example, this.time);
    const [time, end] = [this.time.toFixed(2), this.example.end.toFixed(2)];
    scrubber.value = this.time;
    scrubber.setAttribute("aria-valuetext", `${time} of ${end}`);
    setText(clock, `${time} / ${end}`);
  }

  seek(time) {
    const { start, end } = this.example;
    this.time = clamp(Number(time), start, end);
    this.show();
  }

  play() {
    if (this.frame !== null) return;
    if (this.time >= this.example.end) this.seek(this.example.start);
    this.last = performance.now();
    this.frame = requestAnimationFrame((now) => this.advance(now));
    this.root.classList.add("playing");
    this.parts.button.setAttribute("aria-label", "Pause");
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.root.classList.remove("playing");
    this.parts.button.setAttribute("aria-label", "Play");
  }

  toggle() {
    if (this.frame === null) this.play();
    else this.pause();
  }

  advance(now) {
    const { start, end } = this.example;
    // A page in the background gets no frames: it goes on where it stopped.
    const passed = clamp(now - this.last, 0, LONGEST_FRAME) / 1000;
    this.last = now;
    this.frame = requestAnimationFrame((next) => this.advance(next));
    this.seek(this.time + (passed * Number(this.parts.speed.value) * (end - start)) / SECONDS);
    if (this.time >= end) this.pause();
  }

  // To the next observation, or to the one before.
  step(direction) {
    this.pause();
    const { observed } = this.example;
    const past = countUntil(observed, this.time);
    const here = Math.abs(observed[past - 1] - this.time) < 1e-6;
    const next = direction > 0 ? past : here ? past - 2 : past - 1;
    this.seek(observed[clamp(next, 0, observed.length - 1)]);
  }

  // Keys belong to the viewer when it has the focus, or when nothing has and it is on screen.
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target === this.parts.speed) return;
    const { top, bottom } = this.root.getBoundingClientRect();
    const seen = top < innerHeight && bottom > 0 && event.target === document.body;
    if (!seen && !this.root.contains(event.target)) return;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction) this.step(direction);
    // A focused button takes the space bar itself.
    else if (event.key === " " && event.target.tagName !== "BUTTON") this.toggle();
    else return;
    event.preventDefault();
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
