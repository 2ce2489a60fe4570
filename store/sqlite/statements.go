package sqlite

// writeStatements are all statements that run inside a write, the queries
// among them included.
var writeStatements = append([]string{
	selectHead, selectStood, selectStanding, selectOwnLast, selectVersions, supersedeTail,
	insertRun, updateRun, closeRun, dropOpenGates, touchRun,
	putGate, selectGate, deleteGates, selectReopened, selectCounted,
	selectEffect, insertEffect, countAttempt, insertAttempt, insertFence, fenceEffect, settleEffect, markUnknown, explainAttempt,
	deleteAttempts, releaseEffect, markDoubt, undo,
	insertHold, selectHold, releaseHold, selectHeld,
	upsertAssignment, selectAssignment, deleteAssignment, upsertAbsence, deleteAbsence,
	insertModelCall, selectModelCall,
	selectIdentity, raiseGeneration, moveStore, probeStore, selectRunBefore, insertLost,
	insertBlob,
	upsertDeployment,
	beginPlace, movePlace, buryNotice, selectDead, settleDead,
}, insertEvents[:]...)
