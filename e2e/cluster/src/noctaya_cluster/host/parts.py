"""The machines and nodes of one cluster, put together from what was decided for it."""

from __future__ import annotations

from typing import Final

from ..errors import ClusterError
from .cgroups import Cgroup
from .layout import CONTROL, NODES, Layout
from .machines import HOLDER, MEMORY, Machine, last_words
from .node import KERNEL_SETTINGS, Node
from .record import Record

LINE: Final = 200
"""Of a last word; the whole is in the log."""


class Parts:
    """All of a cluster's machines."""

    def __init__(self, layout: Layout, record: Record) -> None:
        self.layout = layout
        self.record = record
        self.cgroup = cgroup = Cgroup.of_this_machine(layout.cgroup)
        addresses = record.addresses
        self.configurations = [Node(number, name, layout, addresses) for number, name in enumerate(NODES, 1)]
        self.control = Machine(CONTROL, layout=layout, cgroup=cgroup, private={"/run": MEMORY})
        self.nodes = [
            Machine(node.name, layout=layout, cgroup=cgroup, private=node.private(), files=KERNEL_SETTINGS)
            for node in self.configurations
        ]

    @classmethod
    def of(cls, layout: Layout) -> Parts:
        """Of the cluster in a folder. Raises ClusterError when there is none."""
        record = Record.read(layout.record)
        if record is None:
            raise ClusterError(f"there is no cluster in {layout.state}: `python -m noctaya_cluster up`")
        return cls(layout, record)

    @property
    def machines(self) -> list[Machine]:
        """The control machine, then the nodes."""
        return [self.control, *self.nodes]

    def held(self) -> bool:
        """Whether every machine is there."""
        return all(machine.known(HOLDER) and machine.process(HOLDER).running for machine in self.machines)

    def dead(self) -> list[tuple[Machine, str]]:
        """Processes that should run and don't."""
        return [
            (machine, name)
            for machine in self.machines
            for name in machine.programs()
            if not machine.process(name).running
        ]

    def component(self, name: str) -> tuple[Machine, str]:
        """A process by `machine/name`; the control machine's need no machine. Raises ClusterError."""
        machine_name, _, program = name.rpartition("/")
        for machine in self.machines:
            if machine.name == (machine_name or CONTROL) and program in machine.programs():
                return machine, program
        raise ClusterError(f"there is no component {name}; there are {', '.join(self.components())}")

    def components(self) -> tuple[str, ...]:
        """The names that `component` knows."""
        others = (f"{node.name}/{name}" for node in self.nodes for name in node.programs())
        return (*self.control.programs(), *others)


def last_words_of(dead: list[tuple[Machine, str]]) -> list[str]:
    """A line for each process that does not run."""
    return [
        f"{machine.name}: {name} does not run: {last_words(machine.log(name), 1)[:LINE]}"
        for machine, name in dead
    ]
