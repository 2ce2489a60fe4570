package agent

// mergeDiff is the RFC 7386 patch that turns object a into object b. Objects
// in a state hold no nulls (see normalState), so null always means removal.
func mergeDiff(a, b map[string]any) map[string]any {
	patch := map[string]any{}
	for _, k := range sortedKeys(a) {
		if _, kept := b[k]; !kept {
			patch[k] = nil
		}
	}
	for _, k := range sortedKeys(b) {
		old, had := a[k]
		if !had {
			patch[k] = b[k]
			continue
		}
		oldObject, ok1 := old.(map[string]any)
		newObject, ok2 := b[k].(map[string]any)
		switch {
		case ok1 && ok2: // each level is compared once, however deep it lies
			if changes := mergeDiff(oldObject, newObject); len(changes) > 0 {
				patch[k] = changes
			}
		case !sameValue(old, b[k]):
			patch[k] = b[k]
		}
	}
	return patch
}

// mergePatch applies an RFC 7386 patch.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if object, ok := target.(map[string]any); ok {
		for _, k := range sortedKeys(object) {
			out[k] = object[k]
		}
	}
	for _, k := range sortedKeys(changes) {
		if changes[k] == nil {
			delete(out, k)
		} else {
			out[k] = mergePatch(out[k], changes[k])
		}
	}
	return out
}

// normalState drops null members of objects: absent and null are the same Go
// value, and a merge patch cannot tell them apart.
func normalState(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range sortedKeys(v) {
			if v[k] != nil {
				out[k] = normalState(v[k])
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalState(v[i])
		}
		return out
	}
	return v
}

func sameValue(a, b any) bool {
	return string(appendValue(nil, a)) == string(appendValue(nil, b))
}

// object parses a canonical object; anything else is an empty one.
func object(j JSON) map[string]any {
	v, err := parseOwn([]byte(j.String()))
	if err != nil {
		return map[string]any{}
	}
	o, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return o
}

func encodeValue(v any) JSON { return appendValue(nil, v) }

// ApplyPatch is the state after an RFC 7386 patch.
func ApplyPatch(state, patch JSON) JSON {
	return encodeValue(mergePatch(object(state), object(patch)))
}

// Without is an object without some of its members, in canonical form.
func Without(o JSON, names ...string) (JSON, error) {
	all, err := objectOf(o)
	for _, n := range names {
		delete(all, n)
	}
	return encodeValue(all), err
}

// With is an object with a member set to a text, in canonical form.
func With(o JSON, name, text string) (JSON, error) {
	all, err := objectOf(o)
	if err != nil {
		return nil, err
	}
	all[name] = text
	return encodeValue(all), nil
}

func objectOf(j JSON) (map[string]any, error) {
	v, err := parseValue([]byte(j.String()))
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, Errorf(CodeInvalid, "%s is no object", clip(j.String(), 60))
	}
	return o, nil
}
