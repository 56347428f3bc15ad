import { useEffect, useState } from 'preact/hooks';
import { bytes, moment } from '../format.js';
import { Copy } from '../parts/basics.js';
import { Drawer } from '../parts/drawer.js';
import { linkTo, place } from '../routes.js';
import { mayChange } from '../session.js';
import { isImage, isText, previewAddress, publicAddress, type StoredFile } from './stored-file.js';

/** A file with what can be shown of it. */
export function FileDrawer({
  file,
  onDelete,
  onClose,
}: {
  file: StoredFile;
  onDelete: () => void;
  onClose: () => void;
}) {
  const address = publicAddress(file);
  const { uploadedBy } = file;
  return (
    <Drawer title={file.name} onClose={onClose}>
      <Preview file={file} />
      <dl class="pairs">
        <dt>Type</dt>
        <dd>{file.contentType}</dd>
        <dt>Size</dt>
        <dd>{bytes(file.size)}</dd>
        <dt>Stored</dt>
        <dd>{file.provider === 'internal' ? 'at the service' : 'in the project’s bucket'}</dd>
        <dt>Uploaded by</dt>
        <dd>
          {uploadedBy === null ? (
            'the project'
          ) : (
            <a href={linkTo(['p', place.value.parts[1] ?? '', 'users'], { open: uploadedBy })}>{uploadedBy}</a>
          )}
        </dd>
        <dt>Created</dt>
        <dd>{moment(file.createdAt)}</dd>
        <dt>Path</dt>
        <dd>
          <code>{file.path}</code> <Copy text={file.path} what="Path" />
        </dd>
        <dt>Address</dt>
        <dd>
          {address === null ? (
            'none: the bucket has no public address'
          ) : (
            <>
              <a href={address} target="_blank" rel="noopener noreferrer">
                {address}
              </a>{' '}
              <Copy text={address} what="Address" />
            </>
          )}
        </dd>
      </dl>
      {address !== null && <p class="muted">Whoever has the address can read the file.</p>}
      {mayChange.value && (
        <p class="foot">
          <button class="danger" onClick={onDelete}>
            Delete…
          </button>
        </p>
      )}
    </Drawer>
  );
}

function Preview({ file }: { file: StoredFile }) {
  const url = previewAddress(file);
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
