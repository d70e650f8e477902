"""The environment of Gymnasium."""

import copy
import gc
import math
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from own import CLASSES, scenario

import elephan
from elephan import gym

POLICY = '''
import numpy as np
from elephan.gym import Policy

class Reno(Policy):
    def act(self, observation):
        return standard(observation)

def standard(observation):
    """Standard TCP, once a round trip."""
    window = 2.0 ** (16 * float(observation[0]))
    return -1.0 if observation[3] > 0 else min(float(np.log2((window + 1) / window)), 1.0)
'''


def standard(observation: np.ndarray[Any, Any]) -> float:
    names: dict[str, Any] = {}
    exec(POLICY, names)
    return float(names["standard"](observation))


def lossy(probability: float) -> dict[str, Any]:
    return {"loss": {"name": "random", "probability": probability}}


def fixed(one: elephan.Scenario):
    return lambda _: one


def test_the_environment_is_one_of_gymnasium():
    for action in (gym.WINDOW_CHANGE, gym.WINDOW, gym.RATE_CHANGE):
        env = gym.Environment([scenario(gym.AGENT)], action=action)
        check_env(env, skip_render_check=True)
        env.close()


def test_an_agent_that_does_what_a_policy_does_gives_the_same_run(tmp_path: Path):
    (tmp_path / "standard.py").write_text(POLICY)
    expected = elephan.run(scenario(f"python:{tmp_path}/standard.py:Reno", "reno"))
    env = gym.Environment(fixed(scenario(gym.AGENT, "reno")))
    observation, info = env.reset()
    rewards = []
    while "run" not in info:
        observation, reward, terminated, truncated, info = env.step(np.array([standard(observation)]))
        # Libraries copy it.
        copy.deepcopy(info)
        assert (terminated, truncated) == (False, "run" in info)
        rewards.append(reward)
    assert info["run"].flows["cwnd_segments"].to_list() == expected.flows["cwnd_segments"].to_list()
    assert info["run"].summary.goodput_bit_s == expected.summary.goodput_bit_s
    assert expected.summary.fairness > 0.3
    # 20 Mbit/s at 40 ms, or less.
    assert len(rewards) > 50
    assert rewards[-1] == 0
    assert max(rewards[:-1]) < math.log(20) - math.log(40)


def test_a_seed_gives_an_episode():
    env = gym.Environment([scenario(gym.AGENT, duration=one, path=lossy(0.01)) for one in ("4 s", "5 s", "6 s")])

    def course(seed: int | None) -> list[float]:
        _, info = env.reset(seed=seed)
        while "run" not in info:
            _, _, _, _, info = env.step(np.array([0.02]))
        return [info["run"].scenario.document["seed"], *info["run"].flows["cwnd_segments"]]

    first = course(3)
    assert course(None) != first
    assert course(3) == first
    assert course(4) != first


def test_environments_do_not_disturb_each_other():
    def course(*others: gym.Environment) -> list[float]:
        env = gym.Environment([scenario(gym.AGENT)])
        all_of = (env, *others)
        for one in all_of:
            one.reset(seed=1)
        seen = []
        for n in range(40):
            for one in others:
                one.step(np.array([-0.5 if n % 2 else 0.4]))
            observation, *_ = env.step(np.array([0.05]))
            seen.append(observation.tolist())
        for one in all_of:
            one.close()
        return seen

    assert course() == course(gym.Environment([scenario(gym.AGENT)]), gym.Environment([scenario("cubic", gym.AGENT)]))


@pytest.mark.parametrize("kind", [SyncVectorEnv, partial(AsyncVectorEnv, context="spawn")], ids=["sync", "async"])
def test_a_vector_of_environments_runs(kind: Any):
    made = [lambda: gym.Environment([scenario(gym.AGENT, duration="3 s")])] * 3
    vector = kind(made, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.reset(seed=1)
    ended = 0
    for _ in range(150):
        observations, rewards, _, truncated, infos = vector.step(np.zeros((3, 1), np.float32))
        assert observations.shape == (3, len(gym.FEATURES))
        assert np.isfinite(rewards).all()
        for number in np.flatnonzero(truncated):
            assert infos["final_info"]["run"][number].summary.goodput_bit_s > 0
        ended += int(truncated.sum())
    assert ended >= 6
    vector.close()


def test_nothing_is_left_of_an_episode_that_is_closed_or_forgotten():
    before = threading.active_count()
    env = gym.Environment([scenario(gym.AGENT, duration="1000 s")])
    for end in (env.close, env.reset, env.close):
        env.reset()
        assert threading.active_count() == before + 1
        end()
    assert threading.active_count() == before
    env.reset()
    del env, end
    gc.collect()
    assert threading.active_count() == before
    # A process ends in the middle of an episode.
    text = "import elephan.gym as g, elephan as e; env = g.Environment([e.dumbbell(rate='9 Mbit/s', rtt='9 ms', "
    text += "duration='99 s', flows=[e.flow(g.AGENT)])]); env.reset(); print('done')"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("action", [[math.nan], [2.0], [0.1, 0.1], 0.1, ["x"], None], ids=str)
def test_a_bad_action_is_told_with_flow_and_time(action: Any):
    env = gym.Environment([scenario("reno", gym.AGENT)])
    env.reset()
    told = r"flow 2 \(python:elephan.gym:Agent\) at 0\.08\d* s: expected an action of one number from -1 to 1, found "
    with pytest.raises(elephan.cc.AlgorithmError, match=told):
        env.step(np.array(action) if action is not None else None)
    # The episode goes on.
    before = env.report
    env.step(np.array([0.0]))
    assert env.report.time_s > before.time_s
    env.close()
    with pytest.raises(RuntimeError, match="found none; call reset"):
        env.step(np.array([0.0]))


def test_a_scenario_that_cannot_be_run_is_an_error_of_reset():
    for wrong, found in (
        (scenario("reno"), "found 0 on sim"),
        (scenario(gym.AGENT, gym.AGENT), "found 2 on sim"),
        (scenario(gym.AGENT, duration="50 ms"), "expected a round trip of flow 1, found none"),
    ):
        with pytest.raises(elephan.ScenarioError, match=found):
            gym.Environment([wrong]).reset()
    with pytest.raises(elephan.ScenarioError, match="rate"):
        gym.Environment(lambda _: elephan.dumbbell(rate="x", rtt="1 s", duration="1 s", flows=[])).reset()
    with pytest.raises(ValueError, match="scenarios: expected one or more, found none"):
        gym.Environment([])
    with pytest.raises(elephan.cc.AlgorithmError, match=r"expected a run of elephan\.gym\.Environment, found another"):
        elephan.run(scenario(gym.AGENT))


def test_an_error_of_another_algorithm_is_raised_by_step(tmp_path: Path):
    (tmp_path / "mine.py").write_text(CLASSES)
    env = gym.Environment([scenario(gym.AGENT, f"python:{tmp_path}/mine.py:Falls")])
    env.reset()
    told = r"flow 2 .* at 2\.\d* s: .* ZeroDivisionError"
    with pytest.raises(elephan.cc.AlgorithmError, match=told):  # noqa: PT012
        for _ in range(100):
            env.step(np.array([0.0]))
    env.reset()
    env.close()


def test_a_policy_alone_sets_the_window():
    env = gym.Environment([scenario(gym.AGENT, path=lossy(0.02))], action=gym.WINDOW)
    env.reset()
    assert env.report.cwnd_segments == 10
    lost = 0
    for n in range(100):
        env.step(np.array([0.2 if n % 2 else 0.25]))
        assert env.report.cwnd_segments == (16 if n % 2 else 32)
        lost += env.report.lost_segments
    assert lost > 10
    env.close()


def test_a_timeout_leaves_one_segment():
    down = [{"at": "2 s", "link": "bottleneck", "up": False}, {"at": "4 s", "link": "bottleneck", "up": True}]
    env = gym.Environment([scenario(gym.AGENT, duration="12 s", event=down)])
    _, info = env.reset()
    windows = []
    while "run" not in info:
        windows.append(env.report.cwnd_segments)
        observation, _, _, _, info = env.step(np.array([0.0]))
        assert env.observation_space.contains(observation)
    assert windows[0] == 10
    assert windows[-1] == 1


def test_a_rate_is_changed_by_a_factor():
    env = gym.Environment([scenario(gym.AGENT)], action=gym.RATE_CHANGE)
    env.reset()
    # A window of 10 segments in a round trip of 40.6 ms, twice that, ...
    for n in range(3):
        env.step(np.array([1.0]))
        rate = 10 * 1448 * 8 / 0.0406 * 2 ** (n + 1)
        assert env.report.pacing_rate_bit_s == pytest.approx(rate, rel=0.02)
        assert env.report.cwnd_segments == pytest.approx(20 * 2 ** (n + 1), rel=0.1)
    for _ in range(3):
        env.step(np.array([-0.5]))
    assert env.report.delivery_rate_bit_s == pytest.approx(rate * 2**-1, rel=0.1)
    env.close()


def test_an_observation_is_in_its_space_whatever_the_report():
    env = gym.Environment([scenario(gym.AGENT)])
    env.reset()
    report = env.report
    assert gym.observe(report)[0] == pytest.approx(math.log2(report.cwnd_segments) / 16)
    with pytest.raises(NotImplementedError, match=r"Policy\.act"):
        gym.Policy().on_report(report)
    env.close()


def test_the_docs_list_the_features():
    text = Path("docs/train.md").read_text()
    for one in gym.FEATURES:
        assert f"| `{one.name}` | {one.meaning} | {one.low:g} to {one.high:g} |" in text


@pytest.mark.slow
def test_the_example_trains_a_policy_that_runs(tmp_path: Path):
    own = Path("python/elephan/examples/own")
    for name in ("train.py", "learned.py"):
        (tmp_path / name).write_text((own / name).read_text())
    words = ("train.py", "--generations", "1", "--episodes", "1")
    ran = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"generation 1: best reward -\d\.\d+; \d+ steps in \d+ s, \d+ steps/s\n", ran.stdout)
    assert elephan.run(scenario(f"python:{tmp_path}/learned.py:Learned")).summary.utilisation > 0


def test_the_policy_of_the_example_fills_the_path_without_loss():
    learned = "python:python/elephan/examples/own/learned.py:Learned"
    flows = [elephan.flow(learned)]
    run = elephan.run(elephan.dumbbell(rate="50 Mbit/s", rtt="60 ms", buffer="20% bdp", flows=flows, duration="30 s"))
    assert run.summary.utilisation > 0.9
    assert run.summary.loss_rate == 0
