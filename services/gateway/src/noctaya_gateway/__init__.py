"""The gateway in front of one model: always there, holds requests while the model starts, and tells KEDA
of the demand.
"""

from importlib.metadata import version

__version__ = version("noctaya-gateway")
