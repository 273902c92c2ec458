// First tab: two balls, and what each model makes of them.

class Arena extends Player {
  constructor(root, { scene, models }) {
    super(root);
    Object.assign(this, { scene, models, ahead: scene.ahead, stop: () => {} });
    const find = (selector) => root.querySelector(selector);
    this.chart = find(".chart");
    this.sum = find(".sum");
    this.slider = find(".horizon input");
    this.setup = new Setup(scene, () => this.changed());
    this.setup.balls = scene.start;
    const example = this.makeExample();
    this.open(example, 0);
    this.panels[0].stage.classList.add("table");
    this.setup.attach(this.panels[0].stage);
    this.setup.set(scene.start);
    this.slider.addEventListener("input", () => {
      this.ahead = Number(this.slider.value);
      this.changed();
    });
    find(".again").addEventListener("click", () => this.rewind());
    find(".shuffle").addEventListener("click", () => this.shuffle());
    this.sizes.observe(this.chart);
  }

  makeExample() {
    const { scene, models, setup } = this;
    const example = makeExample(scene, setup.balls, this.ahead, scene.context);
    Object.assign(example, { models });
    example.tracks[0].ahead = true;
    // What was computed last stays until there is something new, if it has as many moments.
    const fits = (track) => track?.rows.length === example.moments.length;
    const last = (i) => this.example?.tracks[i + 1];
    models.forEach((model, i) =>
      example.tracks.push(fits(last(i)) ? last(i) : pendingTrack(model, example)),
    );
    return example;
  }

  changed() {
    this.pause();
    this.stop();
    this.renew(this.makeExample(), 0);
    this.showHorizon();
    this.busy = true;
    this.stop = inSlices(this.compute(this.example));
  }

  *compute(example) {
    const times = example.observed.slice(0, this.scene.context);
    const values = times.map((_, i) => example.truth[i * FINE]);
    for (const [i, model] of this.models.entries()) {
      const track = yield* predictTrack(model, { times, values }, example);
      example.tracks[i + 1] = Object.assign(track, { ahead: true });
      if (this.example === example) this.renew(example, this.time);
    }
    this.busy = false;
    this.show();
  }

  rewind() {
    this.pause();
    this.seek(0);
  }

  shuffle() {
    const places = randomPlaces(2, this.scene.radius);
    this.setup.set(places.map((position) => ({ position, velocity: randomDirection() })));
  }

  relook() {
    this.looks = null;
    super.relook();
  }

  show() {
    super.show();
    const setting = this.frame === null && this.time <= this.example.start;
    this.root.classList.toggle("setting", setting);
    if (!this.chart) return;
    this.looks ??= this.readLooks();
    drawChart(this.chart, this.example, this.time, this.looks);
    this.tell();
  }

  readLooks() {
    const models = this.panels.slice(1).map(({ figure, look }) => [figure.dataset.model, look.colour]);
    return { ...readLook(this.root), models: Object.fromEntries(models) };
  }

  pause() {
    super.pause();
    if (this.example) this.show();
  }

  showHorizon() {
    const beyond = this.ahead > this.scene.ahead ? ", longer than it was trained on" : "";
    const text = `${this.ahead} observations${beyond}`;
    setText(this.root.querySelector(".horizon output"), text);
    this.slider.setAttribute("aria-valuetext", text);
  }

  // Updates and errors in words, at the start those of the end. Read aloud at rest only.
  tell() {
    const now = this.time || this.example.end;
    this.sum.setAttribute("aria-live", this.frame === null ? "polite" : "off");
    const at = countUntil(this.example.moments, now) - 1;
    const parts = this.example.tracks
      .filter(({ errors }) => errors)
      .map(({ model, errors, updates }) => {
        const count = countUntil(updates, now);
        return `${model}: ${count} updates, off by ${errors[at].toFixed(3)}`;
      });
    setText(this.sum, parts.length ? `By time ${now.toFixed(2)}, ${parts.join("; ")}.` : "");
  }
}
