"""Other frameworks' doors to these models. Each is one file and one extra, loaded when imported."""
