"""How well and how fast khms answers, beside other tools of its kind: `make bench`, which writes BENCHMARKS.md.

    sets -> contest (each tool through driver + peers/<tool>, in an environment of its own) -> score -> report

Nothing of this is in the wheel. `khms bench` itself, which times whole commands, is in khms/measure.
"""
