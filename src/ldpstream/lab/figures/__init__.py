"""Pictures of runs and of experiments (Matplotlib, the extra `figures`)."""

from ldpstream.lab.figures.charts import Axis, Chart, Panel, Point
from ldpstream.lab.figures.drawing import draw
from ldpstream.lab.figures.releases import releases_figure

__all__ = ["Axis", "Chart", "Panel", "Point", "draw", "releases_figure"]
