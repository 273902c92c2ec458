// A training step backward: gradients of all weights from those of the errors that a walk found.

#pragma once

#include "walk.h"

// Gradients of the loss by what a walk found, laid out (batch, time). Python fills it in.
template <typename T>
struct Upstream {
    const T *error, *step, *start, *past;
    long steps_end;  // Whether the gradient of predicted steps ends at the states.
};

template <typename T>
class Backward {
public:
    explicit Backward(Walk<T>& walk)
        : walk(walk), nets(walk.nets), layout(walk.layout), count(walk.every.size()),
          encoder(nets.encoder), decoder(nets.decoder), steps(nets.steps), state(nets.width),
          first(nets.width), slope(nets.width), gates(4 * nets.width),
          origin(padded<T>(nets.shape.dim)),
          inputs(zeros<T>(3 * nets.shape.hidden * nets.width)),
          states(zeros<T>(3 * nets.shape.hidden * nets.width)),
          inputs_bias(zeros<T>(3 * nets.width)),
          states_bias(zeros<T>(3 * nets.width)), effect(zeros<T>(nets.shape.drive * nets.width)),
          driven(zeros<T>(nets.shape.drive * nets.width)), scratch(nets.width),
          outputs(std::max(padded<T>(nets.shape.dim), (long)Lanes<T>::panel)) {
        for (Rows<T>* each : {&state, &first, &slope, &gates, &origin}) each->reserve(count);
        for (long knot = 0; knot < count; knot++) {
            for (Rows<T>* each : {&state, &first, &slope})
                std::fill_n((*each)(knot), nets.width, T(0));
            std::fill_n(origin(knot), padded<T>(nets.shape.dim), T(0));
        }
        scratch.reserve(BLOCK), outputs.reserve(BLOCK);
    }

    void run(const Upstream<T>& by) {
        through_points(walk.kept, by.error);
        through_points(walk.past, by.past);
        through_starts(by.start);
        through_lines();
        through_steps(by.step, by.steps_end);
        through_rounds();
        through_encoder();
    }

    Walk<T>& walk;
    const Networks<T>& nets;
    const Layout<T>& layout;
    long count;
    MLPGradients<T> encoder, decoder, steps;
    Rows<T> state, first, slope, gates, origin;  // Gradients of what each knot has.
    std::unique_ptr<T[]> inputs, states, inputs_bias, states_bias;  // Of the cell's weights.
    std::unique_ptr<T[]> effect, driven;  // Of what controls do.

private:
    Rows<T> scratch, outputs;

    auto part(long offset) const {
        return [this, offset](long knot) { return walk.knots(knot) + offset; };
    }

    // The gradient of what each integral adds, from that of the sum.
    void add_driven(const T* integrals, const T* change, T* sums) const {
        for (long j = 0; j < nets.shape.drive; j++, sums += nets.width)
            for (long c = 0; c < nets.width; c++) sums[c] += integrals[j] * change[c];
    }

    // From the errors of observations to their lines.
    void through_points(const std::vector<Point<T>>& points, const T* by) {
        long dim = nets.shape.dim, width = nets.width, total = points.size();
        for (long start = 0; start < total; start += BLOCK) {
            long stop = std::min(start + BLOCK, total);
            auto features = [&](long i) { return walk.points(points[i].record); };
            auto out = [&](long i) { return outputs(i - start); };
            auto change = [&](long i) { return scratch(i - start); };
            for (long i = start; i < stop; i++) {
                const T* residual = features(i) + walk.residual();
                T scale = by[points[i].place] * 2 / dim, *at = out(i);
                T* base = origin(points[i].knot);
                for (long d = 0; d < dim; d++) at[d] = residual[d] * scale;
                if (nets.shape.moves)
                    for (long d = 0; d < dim; d++) base[d] -= at[d];
            }
            decoder.rest(start, stop, features, out, change);
            for (long i = start; i < stop; i++) {
                T *at = first(points[i].knot), *along = slope(points[i].knot);
                const T* by_first = change(i);
                T offset = points[i].offset;
                add_driven(features(i) + walk.point_drive(), by_first, driven.get());
                for (long c = 0; c < width; c++) {
                    at[c] += by_first[c];
                    along[c] += offset * by_first[c];
                }
            }
        }
    }

    // The start of every line is decoded too: subtracted from displacements, or itself a target.
    void through_starts(const T* by) {
        long dim = nets.shape.dim, width = nets.width;
        for (long start = walk.first_lined; start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            auto change = [&](long knot) { return scratch(knot - start); };
            if (!nets.shape.moves)
                for (long knot = start; knot < stop; knot++) {
                    const T* residual = walk.knots(knot) + layout.origin;
                    T scale = by[place(knot)] * 2 / dim;
                    for (long d = 0; d < dim; d++) origin(knot)[d] = residual[d] * scale;
                }
            decoder.rest(start, stop, part(layout.start), origin, change);
            for (long knot = start; knot < stop; knot++)
                for (long c = 0; c < width; c++) first(knot)[c] += change(knot)[c];
        }
    }

    long place(long knot) const {
        return walk.every[knot].row * walk.batch.time + walk.every[knot].index;
    }

    void through_lines() {
        long half = nets.half, hidden = nets.shape.hidden;
        T scale = T(nets.shape.velocity_scale);
        const Term<T> to_state[] = {{0, &nets.decoder.backward[0]}};
        const Term<T> to_velocity[] = {{0, &nets.to_velocity}};
        auto velocity = [&](long knot) { return state(knot) + half; };
        for (long start = walk.first_lined; start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            for (long knot = start; knot < stop; knot++)
                for (long c = 0; c < nets.width; c++) slope(knot)[c] *= scale;
            decoder.first(start, stop, part(layout.state), first);
            // The slope has weights of the first layer's left half only.
            for (long knot = start; knot < stop; knot++) {
                T* copy = scratch(knot - start);
                std::fill_n(copy, nets.width, T(0));
                std::copy_n(walk.knots(knot) + layout.state + half, half, copy);
            }
            add_outer(start, stop, slope, hidden,
                      [&](long knot) { return scratch(knot - start); }, half,
                      decoder.weights[0].get(), static_cast<T*>(nullptr), nets.width);
            product(start, stop, first, to_state, [](long, long) { return Vector<T>{}; },
                    [&](long knot, long c, Vector<T> sum) { store(state(knot) + c, sum); });
            product(start, stop, slope, to_velocity, [](long, long) { return Vector<T>{}; },
                    [&](long knot, long c, Vector<T> sum) {
                        for (long l = 0; l < Lanes<T>::count && c + l < half; l++)
                            velocity(knot)[c + l] += sum[l];
                    });
        }
    }

    // The knots that have a predicted step are those after the context.
    void through_steps(const T* by, bool end_here) {
        long begin = 0;
        while (begin < count && walk.every[begin].index < nets.shape.context - 1) begin++;
        for (long start = begin; start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            auto out = [&](long knot) { return outputs(knot - start); };
            auto change = [&](long knot) { return scratch(knot - start); };
            for (long knot = start; knot < stop; knot++) {
                std::fill_n(out(knot), (long)Lanes<T>::panel, T(0));
                out(knot)[0] = by[place(knot)];
            }
            const Term<T> terms[] = {{0, &nets.steps.backward[0]}};
            auto add = [&](long knot, long c, Vector<T> sum) { store(state(knot) + c, sum); };
            auto had = [&](long knot, long c) { return load(state(knot) + c); };
            if (nets.steps.plain) {
                add_outer(start, stop, out, 1, part(layout.state), nets.shape.hidden,
                          steps.weights[0].get(), steps.biases[0].get());
                if (!end_here) product(start, stop, out, terms, had, add);
            } else {
                steps.rest(start, stop, part(layout.steps), out, change);
                steps.first(start, stop, part(layout.state), change);
                if (!end_here) product(start, stop, change, terms, had, add);
            }
        }
    }

    // Through the updates, the last round first.
    void through_rounds() {
        long half = nets.half, stop = count;
        T scale = T(nets.shape.velocity_scale);
        for (long round = walk.rounds.size() - 1; round >= 0; stop = walk.rounds[round--])
            for (long start = walk.rounds[round]; start < stop; start += BLOCK) {
                long end = std::min(start + BLOCK, stop);
                auto moved = [&](long knot) { return scratch(knot - start); };
                nets.cell.backward(start, end, part(layout.cell), gates, state, moved);
                for (long knot = start; knot < end; knot++) {
                    long before = walk.every[knot].before;
                    if (before < 0) continue;
                    T by = scale * walk.every[knot].length, *to = state(before);
                    const T* from = moved(knot);
                    add_driven(walk.knots(knot) + layout.drive, from, effect.get());
                    for (long c = 0; c < half; c++) {
                        to[c] += from[c];
                        to[half + c] += from[half + c] + by * from[c];
                    }
                }
            }
    }

    // The weights of the cell, and the encoder, for all knots at once.
    void through_encoder() {
        long width = nets.width, hidden = nets.shape.hidden;
        auto gate_at = [&](long gate) {
            return [&, gate](long knot) { return gates(knot) + gate * width; };
        };
        const Term<T> terms[] = {{0, &nets.cell.to_inputs[0]},
                                 {width, &nets.cell.to_inputs[1]},
                                 {2 * width, &nets.cell.to_inputs[2]}};
        const long of_state[] = {0, 1, 3};  // The new gate's share of the state has its own.
        for (long start = 0; start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            for (long gate = 0; gate < 3; gate++) {
                long weights = gate * hidden * width;
                add_outer(start, stop, gate_at(gate), hidden, part(layout.cell), hidden,
                          inputs.get() + weights, inputs_bias.get() + gate * width);
                add_outer(start, stop, gate_at(of_state[gate]), hidden,
                          part(layout.cell + width), hidden, states.get() + weights,
                          states_bias.get() + gate * width);
            }
            auto encoded = [&](long knot) { return scratch(knot - start); };
            product(start, stop, gates, terms, [](long, long) { return Vector<T>{}; },
                    [&](long knot, long c, Vector<T> sum) { store(encoded(knot) + c, sum); });
            // The gradients of states have been used, and make room.
            encoder.rest(start, stop, part(layout.encoder), encoded, state);
            encoder.first(start, stop, part(layout.input), state);
        }
    }
};
