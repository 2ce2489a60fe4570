package trip_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/examples/trip"
)

// The traveller changes their mind while three tools are in flight.
func TestTrip(t *testing.T) {
	run := agenttest.Options{Model: trip.Model()}.Start(t, trip.Agent(&trip.Desk{}), trip.Start{Traveller: "c-017"})
	run.Says("Book me flight LX 318 to Zurich, a car there, and find a hotel")
	require.Equal(t, agent.TookInterrupted, run.Says("Actually, cancel that").Took.How)
	run.Done("1.2", trip.Booked{ID: "car in Zurich"})
	run.Done("1.1", trip.Booked{ID: "flight LX 318"})
	run.Done("1.4", trip.Booked{ID: "release of flight LX 318"})
	require.Equal(t, agent.StepUndone, run.Step("1.1").Status)
	require.Equal(t, agent.StepDone, run.Step("1.2").Status)
	require.Equal(t, agent.StepAbandoned, run.Step("1.3").Status)
	require.Equal(t, []string{"I stopped. What stands: car in Zurich. Shall I give that back, too?"}, run.Replies())
}

// It was stopped in time: there is nothing to give back.
func TestTrip_StoppedInTime(t *testing.T) {
	run := agenttest.Options{Model: trip.Model()}.Start(t, trip.Agent(&trip.Desk{}), trip.Start{Traveller: "c-017"})
	run.Says("Book me a trip")
	run.Says("Actually, cancel that")
	run.Stops("1.1")
	run.Done("1.2", trip.Booked{ID: "car in Zurich"})
	require.Equal(t, agent.StepCancelled, run.Step("1.1").Status)
	require.Equal(t, []string{"I stopped. What stands: car in Zurich. Shall I give that back, too?"}, run.Replies())
}
