package page

// runRoutes registers the pages of runs, and what is about all runs of an
// organisation: its models and its audit log.
func (a *App) runRoutes() {
	a.handle("GET /orgs/{org}/runs", a.runList)
	a.handle("GET /runs/{run}", a.runPage)
	a.handle("GET /runs/{run}/live", a.runLive)
	a.handle("GET /runs/{run}/events/{seq}", a.runEvent)
	a.handle("GET /runs/{run}/files", a.runFiles)
	a.handle("GET /runs/{run}/preview", a.runPreview)
	a.handle("GET /runs/{run}/download", a.runDownload)
	a.handle("GET /runs/{run}/archive", a.runArchive)
	a.handle("POST /runs/{run}/input", a.runInput)
	a.handle("POST /runs/{run}/stop", a.runStop)
	a.handle("POST /runs/{run}/delete", a.runDelete)
	a.handle("GET /orgs/{org}/models", a.models)
	a.handle("POST /orgs/{org}/models", a.setModels)
	a.handle("GET /orgs/{org}/audit", a.orgAudit)
	a.handle("GET /audit", a.wholeAudit)
}

// runNotices are what the pages say about what was done to a run.
var runNotices = map[string]string{
	"input-given":    "The run has your input.",
	"run-stopped":    "The run is stopped: nothing of it is alive.",
	"run-stopping":   "The run is being stopped. It is terminated once nothing of it is alive.",
	"run-deleted":    "The run is deleted.",
	"run-erasing":    "The run is being stopped and deleted.",
	"models-changed": "The models that agents may use are changed.",
}
