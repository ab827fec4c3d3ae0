package chromium

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/io"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	kumo "kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/render"
)

const (
	shotTime     = 20 * time.Second // limit of a page's shots together
	maxShot      = 16 << 20         // bytes of a shot; a longer one fails
	maxHeight    = 16384            // pixels; the rest of a longer page is cut off. Chromium's textures are no larger
	maxPrinted   = 200              // sheets of a PDF; the others are missing
	thumbWidth   = 320              // pixels
	thumbQuality = 75               // percent
)

// shoot takes the shots of a page whose document was read: they may change its layout.
func (g *gate) shoot(r *render.Result, kinds []kumo.ShotKind) {
	ctx, cancel := context.WithTimeout(g.tab, shotTime)
	defer cancel()
	for _, kind := range kinds {
		data, err := g.shot(ctx, kind)
		if err == nil && len(data) > maxShot {
			err = fmt.Errorf("it is longer than %s", stats.Bytes(maxShot))
		}
		if err == nil && len(data) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			r.ShotErrors = append(r.ShotErrors, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		r.Shots = append(r.Shots, kumo.Shot{Kind: kind, Data: data})
	}
}

func (g *gate) shot(ctx context.Context, kind kumo.ShotKind) ([]byte, error) {
	width, height := float64(g.cfg.Width), float64(g.cfg.Height)
	switch kind {
	case kumo.ShotView:
		return capture(ctx, page.CaptureScreenshotParams{})
	case kumo.ShotThumb:
		return capture(ctx, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg,
			Quality: new(int64(thumbQuality)),
			Clip:    &page.Viewport{Width: width, Height: height, Scale: min(thumbWidth/width, 1)}})
	case kumo.ShotFull:
		m, err := chromedp.Call(ctx, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return nil, err
		}
		if m.CSSContentSize != nil {
			height = max(height, math.Ceil(m.CSSContentSize.Height))
		}
		return capture(ctx, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true),
			Clip: &page.Viewport{Width: width, Height: min(height, maxHeight), Scale: 1}})
	case kumo.ShotPDF:
		return printPDF(ctx)
	}
	return nil, errors.New("there is no such shot")
}

func capture(ctx context.Context, p page.CaptureScreenshotParams) ([]byte, error) {
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, p)
	if err != nil {
		return nil, err
	}
	return shot.Data, nil
}

// printPDF reads the PDF as a stream, since nothing bounds its length.
func printPDF(ctx context.Context) (data []byte, err error) {
	pdf, err := chromedp.Call(ctx, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: new(true),
		PreferCSSPageSize: new(true), PageRanges: fmt.Sprintf("1-%d", maxPrinted),
		TransferMode: page.PrintToPDFTransferModeReturnAsStream})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = chromedp.Call(ctx, io.Close, io.CloseParams{Handle: pdf.Stream}) }() // it ends with the page
	for len(data) <= maxShot {
		part, err := chromedp.Call(ctx, io.Read, io.ReadParams{Handle: pdf.Stream, Size: 1 << 20})
		if err != nil {
			return nil, err
		}
		if data = append(data, part.Data...); part.EOF {
			break
		}
	}
	return data, nil
}
