//go:build (amd64 || arm64) && (linux || darwin || windows || freebsd)

package pdf

import (
	"cmp"
	"strings"

	"github.com/klippa-app/go-pdfium/requests"

	"kumo/internal/content/document"
)

// metadata reads what the file states about itself. XMP goes before the document information dictionary, whose strings
// often are those of a converter.
func (s *session) metadata() {
	x := parseXMP(packetOf(s.file))
	d := s.doc
	d.Title = cmp.Or(tidy(x.title), s.info("Title"))
	d.Author = cmp.Or(tidy(strings.Join(x.creators, ", ")), s.info("Author"))
	d.Description = cmp.Or(tidy(x.description), s.info("Subject"))
	d.Rights = cmp.Or(tidy(x.rights), tidy(x.license))
	d.Published = cmp.Or(isoDate(x.created), infoDate(s.info("CreationDate")))
	d.Modified = cmp.Or(isoDate(x.modified), infoDate(s.info("ModDate")))
	if l, err := s.p.FPDFCatalog_GetLanguage(&requests.FPDFCatalog_GetLanguage{Document: s.ref}); err == nil {
		d.Lang = tidy(l.Language)
	}
	d.Lang = cmp.Or(d.Lang, tidy(x.lang))
	if d.Lang == "x-default" {
		d.Lang = ""
	}
	for _, p := range []document.Property{{Name: "keywords", Value: s.info("Keywords")},
		{Name: "generator", Value: cmp.Or(s.info("Creator"), s.info("Producer"))},
		{Name: "tdm-reservation", Value: tidy(x.reservation)}, {Name: "tdm-policy", Value: tidy(x.policy)}} {
		if p.Value != "" {
			d.Properties = append(d.Properties, p)
		}
	}
	s.attachments()
}

func (s *session) info(tag string) string {
	v, err := s.p.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: s.ref, Tag: tag})
	if err != nil {
		s.fatal(err)
		return ""
	}
	return tidy(v.Value)
}

// tidy bounds and cleans a text of the metadata.
func tidy(text string) string {
	text = clean([]rune(text[:min(len(text), 8<<10)]))
	if r := []rune(text); len(r) > 1000 {
		text = string(r[:1000])
	}
	return text
}

// attachments lists the names of embedded files.
func (s *session) attachments() {
	n, err := s.p.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: s.ref})
	if err != nil {
		s.fatal(err)
		return
	}
	const most = 1000
	for i := range min(n.AttachmentCount, most) {
		a, err := s.p.FPDFDoc_GetAttachment(&requests.FPDFDoc_GetAttachment{Document: s.ref, Index: i})
		if s.fatal(err) {
			return
		}
		if err != nil {
			continue
		}
		name, err := s.p.FPDFAttachment_GetName(&requests.FPDFAttachment_GetName{Attachment: a.Attachment})
		if s.fatal(err) {
			return
		}
		if err == nil && tidy(name.Name) != "" {
			s.doc.Attachments = append(s.doc.Attachments, tidy(name.Name))
		}
	}
}
