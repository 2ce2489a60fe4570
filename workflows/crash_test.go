package workflows_test

func childWorker(string) int { return 0 }
