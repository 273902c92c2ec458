// The networks of a PC-ODE, for rows of memory: residual MLP, GRU cell and lines.

#pragma once

#include "kernels.h"

// What a model consists of. Python fills it in; see `_Shape` in `native.py`.
struct Shape {
    long dim, inputs, hidden, layers, step_layers, context, moves, motion, whole_steps;
    long drive;  // Integrals of controls that drive a segment, two for each control; 0 for none.
    double min_step, max_step, velocity_scale;
};

// A residual MLP. Its features, the outputs of all layers but the last, stand one after the other.
template <typename T>
struct MLP {
    long inputs, hidden, outputs, width, inner;
    bool plain;  // A single linear layer.
    std::vector<Packed<T>> forward, backward;

    // `weights` holds a weight and a bias for each layer.
    MLP(const T* const* weights, long inputs, long hidden, long outputs, long layers,
        bool gradients)
        : inputs(inputs), hidden(hidden), outputs(outputs), width(padded<T>(hidden)),
          inner(std::max(0L, layers - 2)), plain(layers == 1) {
        for (long layer = 0; layer < layers; layer++) {
            long in = layer == 0 ? inputs : hidden, out = layer == layers - 1 ? outputs : hidden;
            const T *weight = weights[2 * layer], *bias = weights[2 * layer + 1];
            forward.emplace_back(weight, bias, out, in, in, 1);
            if (gradients) backward.emplace_back(weight, nullptr, in, out, 1, in);
        }
    }

    long features() const { return plain ? 0 : (inner + 1) * width; }
    const Packed<T>& last() const { return forward.back(); }

    // Features from the first layer's inputs.
    template <typename In, typename Features>
    void first(long from, long to, const In& in, const Features& features) const {
        const Term<T> terms[] = {{0, &forward[0]}};
        const T* bias = forward[0].bias.get();
        product(from, to, in, terms, [&](long, long c) { return load(bias + c); },
                [&](long row, long c, Vector<T> sum) { store(features(row) + c, relu<T>(sum)); });
    }

    // The remaining layers. `out` has the padded width of the outputs.
    template <typename Features, typename Out>
    void rest(long from, long to, const Features& features, const Out& out) const {
        for (long layer = 0; layer < inner; layer++) {
            const Packed<T>& weights = forward[layer + 1];
            const Term<T> terms[] = {{layer * width, &weights}};
            const T* bias = weights.bias.get();
            product(from, to, features, terms, [&](long, long c) { return load(bias + c); },
                    [&](long row, long c, Vector<T> sum) {
                        T* at = features(row) + layer * width + c;
                        store(at + width, relu<T>(sum) + load(at));
                    });
        }
        const Term<T> terms[] = {{inner * width, &last()}};
        const T* bias = last().bias.get();
        product(from, to, features, terms, [&](long, long c) { return load(bias + c); },
                [&](long row, long c, Vector<T> sum) { store(out(row) + c, sum); });
    }
};

// Gradients of an MLP's weights, summed over rows.
template <typename T>
struct MLPGradients {
    const MLP<T>& net;
    std::vector<std::unique_ptr<T[]>> weights, biases;
    Rows<T> masked;

    explicit MLPGradients(const MLP<T>& net) : net(net), masked(net.width) {
        for (const Packed<T>& layer : net.forward) {
            weights.push_back(zeros<T>(layer.outputs * padded<T>(layer.inputs)));
            biases.push_back(zeros<T>(padded<T>(layer.outputs)));
        }
        masked.reserve(BLOCK);
    }

    // From gradients of the outputs to those of the first layer's outputs, before their ReLU.
    // At most BLOCK rows.
    template <typename Features, typename Out, typename Change>
    void rest(long from, long to, const Features& features, const Out& out, const Change& change) {
        long width = net.width, depth = net.inner, columns = width;
        add_outer(from, to, out, net.outputs,
                  [&](long row) { return features(row) + depth * width; }, net.hidden,
                  weights.back().get(), biases.back().get());
        const Term<T> last[] = {{0, &net.backward.back()}};
        product(from, to, out, last, [](long, long) { return Vector<T>{}; },
                [&](long row, long c, Vector<T> sum) { store(change(row) + c, sum); });
        auto inner = [&](long row) { return masked(row - from); };
        for (long layer = depth; layer > 0; layer--) {
            for (long row = from; row < to; row++) {
                const T *after = features(row) + layer * width, *before = after - width;
                T *to_mask = inner(row), *all = change(row);
                // A layer that adds to its input was active where it made it larger.
                for (long c = 0; c < columns; c++)
                    to_mask[c] = after[c] > before[c] ? all[c] : T(0);
            }
            add_outer(from, to, inner, net.hidden,
                      [&](long row) { return features(row) + (layer - 1) * width; }, net.hidden,
                      weights[layer].get(), biases[layer].get());
            const Term<T> terms[] = {{0, &net.backward[layer]}};
            product(from, to, inner, terms,
                    [&](long row, long c) { return load(change(row) + c); },
                    [&](long row, long c, Vector<T> sum) { store(change(row) + c, sum); });
        }
        for (long row = from; row < to; row++) {
            T *all = change(row), *active = features(row);
            for (long c = 0; c < columns; c++) all[c] = active[c] > 0 ? all[c] : T(0);
        }
    }

    template <typename In, typename Change>
    void first(long from, long to, const In& in, const Change& change) {
        add_outer(from, to, change, net.hidden, in, net.inputs, weights[0].get(), biases[0].get());
    }
};

// A GRU cell. `inputs` and `states` hold the weights of the reset, update and new gate.
template <typename T>
struct Cell {
    long hidden, width;
    std::vector<Packed<T>> inputs, states, to_inputs, to_states;

    // `weights`: of inputs, of states, and the two biases.
    Cell(const T* const* weights, long hidden, bool gradients)
        : hidden(hidden), width(padded<T>(hidden)) {
        std::vector<T> both(hidden);
        for (long gate = 0; gate < 3; gate++) {
            const T *in = weights[0] + gate * hidden * hidden,
                    *of = weights[1] + gate * hidden * hidden;
            const T *one = weights[2] + gate * hidden, *other = weights[3] + gate * hidden;
            for (long c = 0; c < hidden; c++) both[c] = one[c] + other[c];
            inputs.emplace_back(in, gate < 2 ? both.data() : one, hidden, hidden, hidden, 1);
            states.emplace_back(of, other, hidden, hidden, hidden, 1);
            if (!gradients) continue;
            to_inputs.emplace_back(in, nullptr, hidden, hidden, 1, hidden);
            to_states.emplace_back(of, nullptr, hidden, hidden, 1, hidden);
        }
    }

    // A row holds encoded input, state before, the gates (reset, update, new, the state's share
    // of the new one) and the state after, each of `width`, from `row(i)` on.
    template <typename Row>
    void update(long from, long to, const Row& row) const {
        for (long gate = 0; gate < 2; gate++) {
            const Term<T> both[] = {{0, &inputs[gate]}, {width, &states[gate]}};
            const T* bias = inputs[gate].bias.get();
            product(from, to, row, both, [&](long, long c) { return load(bias + c); },
                    [&](long i, long c, Vector<T> sum) {
                        store(row(i) + (2 + gate) * width + c, sigmoid<T>(sum));
                    });
        }
        const Term<T> state[] = {{width, &states[2]}}, input[] = {{0, &inputs[2]}};
        const T *of = states[2].bias.get(), *in = inputs[2].bias.get();
        product(from, to, row, state, [&](long, long c) { return load(of + c); },
                [&](long i, long c, Vector<T> sum) { store(row(i) + 5 * width + c, sum); });
        product(from, to, row, input, [&](long, long c) { return load(in + c); },
                [&](long i, long c, Vector<T> sum) {
                    T* at = row(i) + c;
                    Vector<T> reset = load(at + 2 * width), share = load(at + 5 * width);
                    Vector<T> keep = load(at + 3 * width), before = load(at + width);
                    Vector<T> fresh = hyperbolic_tangent<T>(sum + reset * share);
                    store(at + 4 * width, fresh);
                    store(at + 6 * width, fresh + keep * (before - fresh));
                });
    }

    // From the gradient of the state after to that of the state before, and of the sums of the
    // gates, which stand in `gates` as they do in a row.
    template <typename Row, typename Gates, typename After, typename Before>
    void backward(long from, long to, const Row& row, const Gates& gates, const After& after,
                  const Before& before) const {
        for (long i = from; i < to; i++) {
            const T *at = row(i), *change = after(i);
            T *sums = gates(i), *kept = before(i);
            for (long c = 0; c < width; c++) {
                T reset = at[2 * width + c], keep = at[3 * width + c], fresh = at[4 * width + c];
                T share = at[5 * width + c], d = change[c];
                T inner = d * (1 - keep) * (1 - fresh * fresh);
                sums[c] = inner * share * reset * (1 - reset);
                sums[width + c] = d * (at[width + c] - fresh) * keep * (1 - keep);
                sums[2 * width + c] = inner;
                sums[3 * width + c] = inner * reset;
                kept[c] = d * keep;
            }
        }
        const Term<T> terms[] = {
            {0, &to_states[0]}, {width, &to_states[1]}, {3 * width, &to_states[2]}};
        product(from, to, gates, terms, [&](long i, long c) { return load(before(i) + c); },
                [&](long i, long c, Vector<T> sum) { store(before(i) + c, sum); });
    }
};

// What integrals of controls add: a row for each, from a column for each.
template <typename T>
std::unique_ptr<T[]> rows_of_integrals(const Shape& shape, const T* columns) {
    long width = padded<T>(shape.hidden);
    auto rows = zeros<T>(shape.drive * width);
    for (long j = 0; j < shape.drive; j++)
        for (long c = 0; c < shape.hidden; c++) rows[j * width + c] = columns[c * shape.drive + j];
    return rows;
}

// The decoder's first features at an offset from the start of a line.
template <typename T>
void first_features(const Shape& shape, const T* first, const T* slopes, T offset,
                    const T* integrals, const T* driven, T* features) {
    long width = padded<T>(shape.hidden);
    for (long c = 0; c < width; c += Lanes<T>::count) {
        Vector<T> sum = load(first + c) + offset * load(slopes + c);
        for (long j = 0; j < shape.drive; j++)
            sum += integrals[j] * load(driven + j * width + c);
        store(features + c, relu<T>(sum));
    }
}

// All networks of a model, packed for products.
template <typename T>
struct Networks {
    Shape shape;
    long half, width;
    MLP<T> encoder;
    Cell<T> cell;
    MLP<T> decoder, steps;
    Packed<T> slope, to_velocity;
    // What each integral of the controls adds to a state, and to the decoder's first layer.
    std::unique_ptr<T[]> effect, driven;

    Networks(const Shape& shape, const T* const* weights, bool gradients)
        : shape(shape), half(shape.hidden / 2), width(padded<T>(shape.hidden)),
          encoder(weights, shape.inputs, shape.hidden, shape.hidden, shape.layers, gradients),
          cell(weights + 2 * shape.layers, shape.hidden, gradients),
          decoder(weights + 2 * shape.layers + 4, shape.hidden, shape.hidden, shape.dim,
                  shape.layers, gradients),
          steps(weights + 4 * shape.layers + 4, shape.hidden, shape.hidden, 1, shape.step_layers,
                gradients) {
        const T* first = weights[2 * shape.layers + 4];
        slope = Packed<T>(first, nullptr, shape.hidden, half, shape.hidden, 1);
        if (gradients) to_velocity = Packed<T>(first, nullptr, half, shape.hidden, 1, shape.hidden);
        const T* const* drives = weights + 4 * shape.layers + 4 + 2 * shape.step_layers;
        effect = rows_of_integrals(shape, drives[0]);
        driven = rows_of_integrals(shape, drives[1]);
    }

    // Position moves along velocity, and controls drive both.
    void move(const T* state, T length, const T* integrals, T* moved) const {
        T by = T(shape.velocity_scale) * length;
        for (long c = 0; c < half; c++) moved[c] = state[c] + state[half + c] * by;
        std::copy(state + half, state + width, moved + half);
        for (long j = 0; j < shape.drive; j++)
            for (long c = 0; c < width; c++) moved[c] += integrals[j] * effect[j * width + c];
    }

    // The decoder's first layer at the start of lines, and its change per unit of time.
    template <typename State, typename First, typename Slope>
    void lines(long from, long to, const State& state, const First& first,
               const Slope& slopes) const {
        const Packed<T>& weights = decoder.forward[0];
        const Term<T> start[] = {{0, &weights}}, change[] = {{half, &slope}};
        const T* bias = weights.bias.get();
        product(from, to, state, start, [&](long, long c) { return load(bias + c); },
                [&](long row, long c, Vector<T> sum) { store(first(row) + c, sum); });
        T scale = T(shape.velocity_scale);
        product(from, to, state, change, [](long, long) { return Vector<T>{}; },
                [&](long row, long c, Vector<T> sum) { store(slopes(row) + c, scale * sum); });
    }

    void along(const T* first, const T* slopes, T offset, const T* integrals, T* features) const {
        first_features(shape, first, slopes, offset, integrals, driven.get(), features);
    }

    // How long the model would wait, from what its step network says.
    T step_length(T raw) const {
        T step = T(shape.min_step) + (raw > 0 ? raw : T(0.01) * raw);
        step = std::min(std::max(step, T(shape.min_step)), T(shape.max_step));
        if (!shape.whole_steps) return step;
        return std::max(std::nearbyint(step), T(std::ceil(shape.min_step)));
    }
};
