// What a walk reads and finds, and what it keeps of every knot and every point.

#pragma once

#include <cstdint>

#include "networks.h"

// A batch and what is found in it, laid out (batch, time). Python fills it in; see `_Batch` in
// `native.py`.
template <typename T>
struct Batch {
    long rows, time, keep;  // `keep`: whether a backward pass may follow.
    double tolerance, overshoot;
    const T *values, *inputs;
    const double* clock;
    const int64_t* lengths;
    const uint8_t *scored, *explore, *own;  // `scored`: whose errors count.
    const uint8_t *changed, *given;  // Either may be null.
    const double *once, *twice;  // Integrals of the controls from each row's start, if they drive.
    // Found: knots; where each segment should have ended and whether that is only a lower bound;
    // predictions; squared errors; outputs of the step network; errors at starts and one
    // observation past the end of segments. Zero where there is none.
    uint8_t *at, *cut, *is_past;
    int64_t* reach;
    T *predicted, *error, *step, *start, *past;
};

constexpr double SAME_TIME = 1e-6;  // Relative difference by which lengths of time are rounded.
constexpr long TOGETHER = 24;  // Points to decode ahead together: fewer are slower one by one.

// An observation that a line predicts.
template <typename T>
struct Point {
    long record, knot, place;  // Its features, the line's knot, and what its error belongs to.
    T offset;
};

// Where things stand in the record of a knot, each padded.
template <typename T>
struct Layout {
    long input, encoder, cell, state, first, slope, start, origin, steps, step, drive, size;

    explicit Layout(const Networks<T>& nets) {
        long width = nets.width;
        input = 0;
        encoder = padded<T>(nets.shape.inputs);
        cell = encoder + nets.encoder.features();
        state = cell + 6 * width;
        first = state + width;
        slope = first + width;
        start = slope + width;
        origin = start + nets.decoder.features();
        steps = origin + padded<T>(nets.shape.dim);
        step = steps + nets.steps.features();
        drive = step + Lanes<T>::panel;
        size = drive + nets.shape.drive;
    }
};
