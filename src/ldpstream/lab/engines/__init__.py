"""Engines that run experiments: in this process, on all cores, or on a Dask cluster."""

from ldpstream.lab.engines.choice import engine_for, engine_named
from ldpstream.lab.engines.dask_cluster import DaskCluster
from ldpstream.lab.engines.engine import Engine, InProcess
from ldpstream.lab.engines.process_pool import ProcessPool

__all__ = ["DaskCluster", "Engine", "InProcess", "ProcessPool", "engine_for", "engine_named"]
