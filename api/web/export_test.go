package web

// RoutesThatAct are the paths of all forms.
func RoutesThatAct() map[string]bool {
	out := map[string]bool{"/login": true, "/logout": true}
	for pattern := range routes {
		if path, acts := cutPost(pattern); acts {
			out[path] = true
		}
	}
	return out
}

func cutPost(pattern string) (string, bool) {
	const post = "POST "
	if len(pattern) > len(post) && pattern[:len(post)] == post {
		return pattern[len(post):], true
	}
	return "", false
}
