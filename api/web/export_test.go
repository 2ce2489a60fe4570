package web

import "time"

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

// StreamTimes shortens how long it takes until a stream looks whether its caller is
// still let in.
func (p *Pages) StreamTimes(ping time.Duration) { p.streams.Ping = ping }

// OpenStreams is how many streams are open.
func (p *Pages) OpenStreams() int { return p.streams.Open() }

// LiveEach is how many streams one person may have.
const LiveEach = liveEach

// Patterns are those of all pages behind the sign-in.
func Patterns() (out []string) {
	for p := range routes {
		out = append(out, p)
	}
	return out
}
