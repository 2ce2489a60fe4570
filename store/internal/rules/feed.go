package rules

import (
	"strings"

	"interlock/agent"
)

// BadPlace refuses a place that no feed has named.
func BadPlace(place string) error {
	return agent.Errorf(agent.CodeInvalid, "%q is no place of this feed: go on from one that it has named", place)
}

// AnyType narrows a feed to events of these types.
func AnyType(q *Query, types []agent.EventType) {
	if len(types) == 0 {
		return
	}
	values := make([]any, 0, len(types))
	for _, t := range types {
		values = append(values, string(t))
	}
	q.And("type IN (%"+strings.Repeat(", %", len(types)-1)+")", values...)
}
