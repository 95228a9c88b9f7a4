"""All rows, in the order of the table; a module per family."""

from bench.row import Row
from bench.rows import audience, builtin, crowd, echo, flood, memory, network, sandbox, sessions, startup

# Last of all the faults: that row adds up what every other row saw.
ROWS: tuple[Row, ...] = (
    *flood.ROWS,
    *echo.ROWS,
    *startup.ROWS,
    *crowd.ROWS,
    *memory.ROWS,
    *sessions.ROWS,
    *sandbox.ROWS,
    *network.ROWS,
    *audience.ROWS,
    *builtin.ROWS,
    *flood.FAULT_ROWS,
)
