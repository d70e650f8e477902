from .environment import AGENT, Agent, Environment
from .policy import FEATURES, RATE_CHANGE, WINDOW, WINDOW_CHANGE, Action, Feature, Policy, observe, utility

__all__ = [
    "AGENT",
    "FEATURES",
    "RATE_CHANGE",
    "WINDOW",
    "WINDOW_CHANGE",
    "Action",
    "Agent",
    "Environment",
    "Feature",
    "Policy",
    "observe",
    "utility",
]
