"""Tables in and out: what sequences keep of them, time stamps, frames, and cutting into windows."""
