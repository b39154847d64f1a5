from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpinn.study._sixteen import restored, shortened

fields = arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6))


@given(fields)
def test_a_field_comes_back_within_a_65000th_of_its_range(values):
    whole, about = shortened({"u": values}, {"axes": ["x"]})
    assert whole["u"].dtype == np.uint16 and about["axes"] == ["x"]
    back = restored(whole, about)["u"]
    step = (values.max() - values.min()) / 65_535
    # Half a step, and the rounding of the numbers that are drawn, which are of 32 bits.
    assert np.abs(back - values).max() <= 0.51 * step + 1e-6 * np.abs(values).max() + 1e-37
    again, told = shortened(whole, about)
    np.testing.assert_array_equal(again["u"], whole["u"])
    assert told == about


@given(fields)
def test_what_was_not_shortened_is_left_as_it_is(values):
    np.testing.assert_array_equal(restored({"u": values}, {})["u"], values)


def test_a_field_that_cannot_be_drawn_is_left_out():
    whole, about = shortened({"u": np.array([1.0, np.nan]), "v": np.zeros(2)}, {})
    assert [*whole] == ["v"] == [*about["ranges"]]
