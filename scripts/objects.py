"""Compile the files of `kernel/` to the objects that a wheel has, with clang. Run by `make objects`."""

import shutil

from elephan.kernel import algorithms, build

shutil.rmtree(build.SHIPPED, ignore_errors=True)
build.SHIPPED.mkdir()
for algorithm in algorithms().values():
    (build.SHIPPED / build.object_name(algorithm.source)).write_bytes(build.made(algorithm.source))
# The last: without it the objects are not used.
(build.SHIPPED / build.KEY).write_text(build.key(), encoding="ascii")
print(
    f"{len(algorithms())} objects in {build.SHIPPED}, {sum(f.stat().st_size for f in build.SHIPPED.iterdir()) / 1e3:.0f} kB"
)
