"""Everything structural between the steps of a trajectory, computed once per trajectory."""

from redclf.relations.views import StepView, TrajectoryView

__all__ = ["StepView", "TrajectoryView"]
