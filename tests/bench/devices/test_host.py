"""Facts about the host, read from a small copy of Linux's file tree."""

from __future__ import annotations

import psutil
import pytest

from attnprof.bench.devices import host


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def cache(index, level, kind, size):
    folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
    return {f"{folder}/level": f"{level}\n", f"{folder}/type": f"{kind}\n", f"{folder}/size": f"{size}\n"}


def test_instruction_caches_are_left_out(tmp_path):
    write(
        tmp_path,
        cache(0, 1, "Data", "48K") | cache(1, 1, "Instruction", "32K") | cache(2, 3, "Unified", "32M"),
    )
    assert host.cache_sizes(tmp_path) == {"L1": 48 * 1024, "L3": 32 * 1024**2}


def test_a_machine_that_tells_no_caches(tmp_path):
    assert host.cache_sizes(tmp_path) == {}


def test_cpu_name_carries_family_and_model(tmp_path):
    write(
        tmp_path, {"proc/cpuinfo": "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n"}
    )
    assert host.cpu_name(tmp_path) == "AMD EPYC (family 26, model 2)"


def test_memory_is_the_systems_where_no_group_limits_it(tmp_path):
    assert host.total_memory(tmp_path) == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("line", "folder", "names"),
    [
        ("0::/job", "sys/fs/cgroup/job", ("memory.max", "memory.current", "inactive_file")),
        (
            "4:memory:/job",
            "sys/fs/cgroup/memory/job",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
def test_the_control_groups_limit_is_respected(tmp_path, line, folder, names):
    limit, usage, cached = names
    write(
        tmp_path,
        {
            "proc/self/cgroup": f"3:cpuset:/x\n{line}\n",
            f"{folder}/{limit}": "1000000\n",
            f"{folder}/{usage}": "700000\n",
            f"{folder}/memory.stat": f"anon 1\n{cached} 200000\n",
        },
    )
    assert host.total_memory(tmp_path) == 1_000_000
    assert host.available_memory(tmp_path) == 500_000


def test_the_limit_of_an_enclosing_group_counts_too(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/outer/inner/memory.max": "max\n",
            "sys/fs/cgroup/outer/inner/memory.current": "10\n",
            "sys/fs/cgroup/outer/memory.max": "4096\n",
            "sys/fs/cgroup/outer/memory.current": "1096\n",
        },
    )
    assert host.available_memory(tmp_path) == 3000


def test_a_group_over_its_limit_leaves_nothing(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "100\n",
            "sys/fs/cgroup/memory.current": "150\n",
        },
    )
    assert host.available_memory(tmp_path) == 0


def test_weather_reads_the_governor(tmp_path):
    write(tmp_path, {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n"})
    weather = host.host_weather(tmp_path)
    assert weather.governor == "performance"
    assert weather.clock_resolution_s is not None
    assert weather.clock_resolution_s <= 1e-3
