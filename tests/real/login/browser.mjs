// A browser without a window: it opens a page, follows all redirects, and keeps cookies.
//
//     node browser.mjs URL [PATH]
//
// Prints {url, status, text} of the last page as JSON; only {url} if its path is PATH, which the browser cannot open.
// NODE_EXTRA_CA_CERTS names further trusted authorities.

/** The redirects that a browser follows at most. */
const REDIRECTS = 20;

const cookies = new Map();
const [start, unreachable] = process.argv.slice(2);
let url = new URL(start);
for (let redirect = 0; redirect < REDIRECTS; redirect++) {
  if (url.pathname === unreachable) {
    console.log(JSON.stringify({ url: url.href }));
    process.exit();
  }
  const sent = [...cookies.values()].filter(({ host }) => host === url.host).map(({ text }) => text);
  const response = await fetch(url, { redirect: 'manual', headers: { cookie: sent.join('; ') } });
  for (const text of response.headers.getSetCookie()) {
    const [pair] = text.split(';');
    cookies.set(`${url.host} ${pair.split('=')[0]}`, { host: url.host, text: pair });
  }
  const location = response.headers.get('location');
  if (location === null) {
    console.log(JSON.stringify({ url: url.href, status: response.status, text: await response.text() }));
    process.exit();
  }
  await response.arrayBuffer();
  url = new URL(location, url);
}
throw new Error(`more than ${REDIRECTS} redirects`);
