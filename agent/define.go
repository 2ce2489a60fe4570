package agent

// Definition is an agent, ready to run. It never changes after Define.
type Definition struct {
	Name         string
	Version      int
	Instructions string
}

func (d *Definition) field(name string) (Field, bool) { return Field{}, false }

type Field struct{}
