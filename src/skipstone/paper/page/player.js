// A player of one example: play it, scrub it, step through it. Time is the only state that its
// pictures depend on. The report replays recorded examples with it, the playground its own.

const SECONDS = 12; // How long a replay takes at speed 1, unless an example says otherwise.
const LONGEST_FRAME = 100; // In milliseconds.

class Player {
  constructor(root) {
    const find = (selector) => root.querySelector(selector);
    this.root = root;
    this.parts = {
      button: find(".play"),
      clock: find(".clock"),
      grid: find(".panels"),
      scrubber: find(".scrubber"),
      speed: find(".speed select"),
    };
    // Tells of every panel when it first has a size, and when that changes.
    this.sizes = new ResizeObserver(() => this.show());
    this.frame = null; // The next frame of the animation, while it plays.
    this.panels = [];
    const { button, scrubber } = this.parts;
    button.addEventListener("click", () => this.toggle());
    scrubber.addEventListener("input", () => {
      this.pause();
      this.seek(scrubber.value);
    });
    document.addEventListener("keydown", (event) => this.press(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.relook());
  }

  // Show an example in panels of its own.
  open(example, time) {
    const { grid } = this.parts;
    this.panels = example.tracks.map((track) => makePanel(example, track));
    grid.dataset.count = this.panels.length;
    grid.replaceChildren(...this.panels.map((panel) => panel.figure), makeKey(example));
    this.sizes.disconnect();
    for (const panel of this.panels) this.sizes.observe(panel.canvas);
    this.panels.forEach((panel) => (panel.look = readLook(panel.figure)));
    this.renew(example, time);
  }

  // Other data of the same kind, in the panels that are there.
  renew(example, time) {
    const { scrubber } = this.parts;
    this.example = example;
    this.panels.forEach((panel, i) => setTrack(panel, example, example.tracks[i]));
    [scrubber.min, scrubber.max] = [example.start, example.end];
    this.time = clamp(time, example.start, example.end);
    this.show();
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
    const { start, end, seconds = SECONDS } = this.example;
    // A page in the background gets no frames: it goes on where it stopped.
    const passed = clamp(now - this.last, 0, LONGEST_FRAME) / 1000;
    this.last = now;
    this.frame = requestAnimationFrame((next) => this.advance(next));
    this.seek(this.time + (passed * Number(this.parts.speed.value) * (end - start)) / seconds);
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
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    // Other inputs have their own use of the arrows.
    const { tagName } = event.target;
    if (event.target !== this.parts.scrubber && (tagName === "INPUT" || tagName === "SELECT")) return;
    const { top, bottom } = this.root.getBoundingClientRect();
    const seen = top < innerHeight && bottom > 0 && bottom > top && event.target === document.body;
    if (!seen && !this.root.contains(event.target)) return;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction) this.step(direction);
    // A focused button takes the space bar itself.
    else if (event.key === " " && event.target.tagName !== "BUTTON") this.toggle();
    else return;
    event.preventDefault();
  }
}
