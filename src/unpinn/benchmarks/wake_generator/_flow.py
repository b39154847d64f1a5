r"""Incompressible Navier-Stokes by a third-order splitting scheme.

$$ \partial_t u + u \cdot \nabla u = -\nabla p + \nu \nabla^2 u, \qquad \nabla \cdot u = 0 $$

Each step (Karniadakis, Israeli and Orszag 1991) extrapolates convection from the past, solves a
Poisson problem for the pressure that makes the result free of divergence, and one Helmholtz problem
for each velocity component. With the explicit part

$$ \hat u = \sum_q \alpha_q u^{n-q} - \Delta t \sum_q \beta_q (u \cdot \nabla u)^{n-q} $$

and the vorticity $\omega^* = \sum_q \beta_q \omega^{n-q}$, the pressure satisfies for every $\phi$

$$ \int \nabla\phi \cdot \nabla p = \int \nabla\phi \cdot \hat u / \Delta t
   - \oint \phi \, (\gamma_0 \, u^{n+1} \cdot n / \Delta t + \nu \, \partial_\tau \omega^*) $$

where the boundary integral runs over the walls. It is the rotational form of the boundary
condition, which keeps the velocity's splitting error at the order of the time scheme.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unpinn.benchmarks.wake_generator._condensed import CondensedSolver
from unpinn.benchmarks.wake_generator._elements import Elements
from unpinn.benchmarks.wake_generator._mesh import Mesh

# For each order: the leading coefficient, the past velocities' and the extrapolation's.
SCHEMES = {
    1: (1.0, (1.0,), (1.0,)),
    2: (3 / 2, (2.0, -1 / 2), (2.0, -1.0)),
    3: (11 / 6, (3.0, -3 / 2, 1 / 3), (3.0, -3.0, 1.0)),
}

Velocity = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
Pressure = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def no_pressure(x: np.ndarray, y: np.ndarray, time: float) -> np.ndarray:
    """The pressure at an outlet: zero."""
    return np.zeros_like(x)


@dataclass(frozen=True)
class FlowProblem:
    """What is to be simulated.

    Arguments:
        mesh: the domain.
        viscosity: the inverse Reynolds number.
        walls: names of the boundary's parts on which the velocity is given.
        velocity: the velocity there, a function of `(x, y, time)` with values `(2, ...)`.
        outlets: names of the parts on which the pressure is given.
        pressure: the pressure there, a function of `(x, y, time)`.
    """

    mesh: Mesh
    viscosity: float
    walls: tuple[str, ...]
    velocity: Velocity
    outlets: tuple[str, ...]
    pressure: Pressure = no_pressure


@dataclass(frozen=True)
class FlowState:
    """All that the next step depends on.

    Arguments:
        step: how many steps have been taken.
        velocity: the latest velocities, newest first, shape `(up to 3, 2, points)`.
        pressure: the latest pressure, shape `(points,)`.
    """

    step: int
    velocity: np.ndarray
    pressure: np.ndarray


class FlowSolver:
    """Advances a flow by steps of equal length."""

    def __init__(self, problem: FlowProblem, step: float):
        self.problem, self.step = problem, step
        mesh = problem.mesh
        self.elements = Elements(mesh)
        self.walls = self.elements.faces(*problem.walls)
        wall_points = np.unique(self.walls.numbers)
        outlet_points = np.unique(self.elements.faces(*problem.outlets).numbers)
        self._wall_places = self._places(wall_points)
        self._outlet_places = self._places(outlet_points)
        self._wall_points = wall_points
        self._poisson = CondensedSolver(mesh, self.elements.stiffness, outlet_points)
        self._helmholtz: tuple[float, CondensedSolver] | None = None
        # What the latest state's velocities give; worked out again for a state from elsewhere.
        self._past: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._latest: FlowState | None = None

    def _places(self, points: np.ndarray) -> np.ndarray:
        mesh = self.problem.mesh
        places = np.empty((2, mesh.points))
        places[:, mesh.numbers] = mesh.coordinates
        return places[:, points]

    def _helmholtz_solver(self, leading: float) -> CondensedSolver:
        """The velocity's matrix; only the first two steps need another than all the rest."""
        if self._helmholtz is None or self._helmholtz[0] != leading:
            matrices = self.problem.viscosity * self.elements.stiffness
            diagonal = np.arange(matrices.shape[-1])
            mass = self.elements.mass.reshape(len(matrices), -1)
            matrices[:, diagonal, diagonal] += leading / self.step * mass
            solver = CondensedSolver(self.problem.mesh, matrices, self._wall_points)
            self._helmholtz = (leading, solver)
        return self._helmholtz[1]

    def _history(self, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A velocity spread to the elements, its convection, and its vorticity on the walls."""
        field = self.elements.scatter(velocity)
        (u, v), ((u_x, v_x), (u_y, v_y)) = field, self.elements.gradient(field)
        convection = np.stack([u * u_x + v * u_y, u * v_x + v * v_y])
        return field, convection, self.walls.restrict(v_x - u_y)

    def advance(self, state: FlowState) -> FlowState:
        """The state one step later."""
        if self._latest is not state:
            self._past = [self._history(velocity) for velocity in state.velocity]
        order = len(state.velocity)
        leading, backward, forward = SCHEMES[order]
        time = (state.step + 1) * self.step
        x, y = self._wall_places
        given = self.problem.velocity(x, y, time)

        explicit = np.zeros_like(self._past[0][0])
        vorticity = np.zeros_like(self._past[0][2])
        for (field, convection, wall), alpha, beta in zip(
            self._past, backward, forward, strict=True
        ):
            explicit += alpha / self.step * field - beta * convection
            vorticity += beta * wall
        pressure = self._pressure(explicit, vorticity, given, leading, time)
        gradient = self.elements.gradient(self.elements.scatter(pressure))
        right = self.elements.gather(self.elements.mass * (explicit - np.stack(gradient)))
        velocity = self._helmholtz_solver(leading).solve(right, given)

        self._past = [self._history(velocity), *self._past][:3]
        self._latest = FlowState(
            step=state.step + 1,
            velocity=np.concatenate([velocity[None], state.velocity])[:3],
            pressure=pressure,
        )
        return self._latest

    def _pressure(
        self,
        explicit: np.ndarray,
        vorticity: np.ndarray,
        given: np.ndarray,
        leading: float,
        time: float,
    ) -> np.ndarray:
        right = self.elements.gather(self.elements.weak_divergence(*explicit))
        walls = self.walls
        positions = np.searchsorted(self._wall_points, walls.numbers)
        normal_velocity = np.sum(given[:, positions] * walls.normal, axis=0)
        turning = np.einsum("fij,fj->fi", walls.along, vorticity)
        flux = leading / self.step * normal_velocity + self.problem.viscosity * turning
        right -= np.bincount(walls.numbers.ravel(), flux.ravel(), minlength=len(right))
        x, y = self._outlet_places
        boundary = self.problem.pressure(x, y, time)
        return self._poisson.solve(right[None], boundary[None])[0]

    def force(self, state: FlowState, *names: str) -> np.ndarray:
        r"""The force $\oint (p n - \nu (\nabla u + \nabla u^T) n)$ of the flow on a body."""
        faces = self.elements.faces(*names)
        field = self.elements.scatter(state.velocity[0])
        (u_x, v_x), (u_y, v_y) = (faces.restrict(slope) for slope in self.elements.gradient(field))
        pressure = faces.restrict(self.elements.scatter(state.pressure))
        n_x, n_y = faces.normal
        shear = self.problem.viscosity * (u_y + v_x)
        stretch = 2 * self.problem.viscosity
        along = (pressure - stretch * u_x) * n_x - shear * n_y
        across = (pressure - stretch * v_y) * n_y - shear * n_x
        return np.array([along.sum(), across.sum()])

    def outflux(self, state: FlowState, *names: str) -> float:
        """The volume that leaves through the named parts of the boundary in unit time."""
        faces = self.elements.faces(*names)
        field = faces.restrict(self.elements.scatter(state.velocity[0]))
        return float(np.sum(field * faces.normal))

    def divergence(self, state: FlowState) -> float:
        """The root of the mean square of the velocity's divergence over the domain."""
        (u_x, _), (_, v_y) = self.elements.gradient(self.elements.scatter(state.velocity[0]))
        mass = self.elements.mass
        return float(np.sqrt(np.sum(mass * (u_x + v_y) ** 2) / mass.sum()))
