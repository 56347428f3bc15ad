import { useEffect, useState } from 'preact/hooks';
import { bytes } from '../format.js';
import { isImage, isText, type StoredFile } from './stored-file.js';

/** A file as the page shows it; `url` null where the page may not read it. */
export function Preview({ file, url }: { file: StoredFile; url: string | null }) {
  const [isBroken, setBroken] = useState(false);
  if (url !== null && isImage(file) && !isBroken) {
    return (
      <p class="file-preview">
        <img src={url} alt={`Preview of ${file.name}`} onError={() => setBroken(true)} />
      </p>
    );
  }
  if (url !== null && isText(file)) return <TextPreview url={url} size={file.size ?? 0} />;
  return (
    <p class="file-preview muted">{isBroken ? 'The image cannot be shown.' : 'There is no preview of such a file.'}</p>
  );
}

/** Bytes of a text that are shown. */
const SHOWN = 32 * 1024;

function TextPreview({ url, size }: { url: string; size: number }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    const ending = new AbortController();
    const headers = { range: `bytes=0-${SHOWN - 1}` };
    fetch(url, { signal: ending.signal, ...(size > SHOWN && { headers }) })
      .then(async (reply) => setText(reply.ok ? await reply.text() : 'The file could not be read.'))
      .catch(() => !ending.signal.aborted && setText('The file could not be read.'));
    return () => ending.abort();
  }, [url, size]);
  if (text === null) return <p class="empty">Loading…</p>;
  return (
    <>
      <pre tabIndex={0} aria-label="Beginning of the file" dir="auto">
        {text}
      </pre>
      {size > SHOWN && <p class="muted">The first {bytes(SHOWN)} of it.</p>}
    </>
  );
}
