"""Python imports this at its start if its folder is in PYTHONPATH: `elephan._core` is then the extension beside this file."""

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

EXTENSION = Path(__file__).with_name("_core.abi3.so")


class Extension:
    """Finds the extension module of the gate, before the one of the checkout."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The specification of `elephan._core`."""
        if name != "elephan._core":
            return None
        return spec_from_file_location(name, EXTENSION, loader=ExtensionFileLoader(name, str(EXTENSION)))


sys.meta_path.insert(0, Extension)
