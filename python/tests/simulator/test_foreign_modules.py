"""Modules of Linux by path, and what is said without the source of a kernel."""

import io
import re
import tarfile

import pytest
from test_foreign_linux import Sender, table_of

from elephan import ScenarioError
from elephan.api.scenario import dumbbell, flow
from elephan.foreign import build, modules


def test_a_parameter_of_a_module_is_a_whole_number():
    """The error names the key and the value, before anything is compiled."""
    flows = [flow({"name": "linux:cubic", "beta": 717.5})]
    with pytest.raises(ScenarioError, match=r"flow\.0\.cc\.beta: expected a whole number, found 717\.5"):
        dumbbell(rate="10 Mbit/s", rtt="20 ms", duration="1 s", flows=flows)
    with pytest.raises(ScenarioError, match=r"flow\.cc\.beta: expected a whole number, found 0\.5"):
        dumbbell(rate="10 Mbit/s", rtt="20 ms", duration="1 s", flows=[flow("reno")]).with_settings(
            {"flow.cc": "{ name = 'linux:cubic', beta = 0.5 }"}
        )


def test_a_module_by_path_with_the_names_it_lacks(tmp_path):
    file = tmp_path / "tcp_mine.c"
    text = """\
#include <linux/module.h>
#include <net/tcp.h>

static int shift = 2;
module_param(shift, int, 0644);
MODULE_PARM_DESC(shift, "the share of the window that a loss takes, as a power of two");

static u32 mine_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) - (tcp_snd_cwnd(tcp_sk(sk)) >> shift), 2U);
}

static struct tcp_congestion_ops mine = {
	.ssthresh = mine_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "mine",
};

static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}
module_init(mine_register);
MODULE_LICENSE("GPL");
"""
    file.write_text(text)
    one = Sender(table_of(file), shift=3)
    assert one.at(80).reduce() == 0.875
    one.close()
    file.write_text(text.replace("tcp_snd_cwnd(tcp_sk(sk)) -", "tcp_sk(sk)->rcv_wnd - tcp_nothing(sk) -"))
    with pytest.raises(ValueError, match=rf"{file}:10: .*not declared: rcv_wnd, tcp_nothing"):
        modules.module(str(file))
    file.write_text("int x;\n")
    with pytest.raises(ValueError, match=r"expected a module that calls tcp_register_congestion_control"):
        modules.module(str(file))


def test_errors_say_what_was_expected(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ValueError, match="expected a C file, found none"):
        modules.module("./absent.c")
    empty = tmp_path / "empty.tar.xz"
    empty.write_bytes(b"no archive")
    for path in (empty, tmp_path):
        with pytest.raises(ValueError, match="expected a kernel's source"):
            modules.import_tree(path)
    member = tarfile.TarInfo("linux/net/ipv4/tcp_bomb.c")
    member.size = 3_000_001
    with tarfile.open(tmp_path / "bomb.tar.xz", "w:xz") as tarball:
        tarball.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(ValueError, match=r"at most 3000000 bytes, found linux/net/ipv4/tcp_bomb\.c of 3000001"):
        modules.import_tree(tmp_path / "bomb.tar.xz")
    monkeypatch.setattr(modules, "DEBIAN_SOURCES", tmp_path)
    assert modules.module("cubic") is None
    package = tmp_path / "linux-source-6.1.tar.xz"
    expected = f"linux-source-6.1: expected {package}, found none; apt-get install linux-source-6.1"
    with pytest.raises(ValueError, match=re.escape(expected)):
        modules.import_tree("linux-source-6.1")
    package.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=rf"{package}: expected a kernel's source"):
        modules.import_tree("linux-source-6.1")
    monkeypatch.setenv("CC", "absent-compiler")
    (tmp_path / "a.c").write_text("int a;\n")
    with pytest.raises(ValueError, match="found absent-compiler"):
        build.shared([tmp_path / "a.c"])
