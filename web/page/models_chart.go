package page

import "agentrun/web/gen"

// The size of a chart in its own units, which the page stretches.
const (
	chartHeight = 120
	// chartTop is room for the largest number.
	chartTop    = 16
	labelHeight = 18
	columnWidth = 24
	columnGap   = 6
	// chartSide is room for what is wider than its column, at both sides.
	chartSide = 8
)

// chart is a bar chart of tokens by day.
type chart struct {
	Width, Height int
	// Most is the largest number of tokens of a day.
	Most    int64
	Columns []column
}

// column is one day of a chart.
type column struct {
	gen.DailyUsage
	X, Width int
	// InputY and OutputY are the upper ends of what requests and answers took,
	// which stand on each other; the heights belong to them.
	InputY, InputHeight, OutputY, OutputHeight int
	// Label says that the day is written below the column.
	Label bool
}

// Middle is where the column's label is centred.
func (c column) Middle() int { return c.X + c.Width/2 }

// Bottom is the chart's lower end, below the labels.
func (c chart) Bottom() int { return c.Height + labelHeight }

// Top is where the largest number of tokens stands.
func (c chart) Top() int { return chartTop }

// LabelY is the line that labels stand on.
func (c chart) LabelY() int { return c.Height + labelHeight - 4 }

// newChart draws the days.
func newChart(days []gen.DailyUsage) chart {
	c := chart{Width: len(days)*columnWidth + 2*chartSide, Height: chartTop + chartHeight}
	for _, day := range days {
		c.Most = max(c.Most, day.Spent.Input+day.Spent.Output)
	}
	for i, day := range days {
		col := column{DailyUsage: day, X: chartSide + i*columnWidth + columnGap/2, Width: columnWidth - columnGap, Label: (len(days)-1-i)%7 == 0}
		col.InputHeight = c.scaled(day.Spent.Input)
		col.OutputHeight = c.scaled(day.Spent.Output)
		col.InputY = c.Height - col.InputHeight
		col.OutputY = col.InputY - col.OutputHeight
		c.Columns = append(c.Columns, col)
	}
	return c
}

// scaled is how high so many tokens stand: what is not nothing, at least a line.
func (c chart) scaled(tokens int64) int {
	if tokens <= 0 {
		return 0
	}
	return max(1, int(float64(tokens)/float64(c.Most)*(chartHeight-1)))
}
