import { useEffect, useState } from 'preact/hooks';
import type { ApiSchemas } from '../api-routes.js';
import { bytes, moment } from '../format.js';
import { Copy } from '../parts/basics.js';
import { Pairs } from '../parts/page-head.js';
import { Drawer } from '../parts/drawer.js';
import { linkTo, place } from '../routes.js';
import { mayChange } from '../session.js';

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

/** A file as the operators' API lists it. */
export type StoredFile = ApiSchemas['StoredFile'];

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
const TEXT = /^(text\/(?!html)[\w.+-]+|application\/(json|x-ndjson|xml|yaml|toml))$/;

const typeOf = ({ contentType }: StoredFile): string => contentType.split(';')[0]!.trim().toLowerCase();

export const isImage = (file: StoredFile): boolean => IMAGE.test(typeOf(file));
const isText = (file: StoredFile): boolean => TEXT.test(typeOf(file));

/** Where the page may read the file: at the service itself. null for one elsewhere, which only a link leads to. */
export function previewAddress(url: string | null): string | null {
  return url !== null && URL.canParse(url) && new URL(url).origin === location.origin ? url : null;
}

/** The public address, for people: never one that runs something. */
export const publicAddress = ({ url }: StoredFile): string | null =>
  url !== null && /^https?:/.test(url) ? url : null;

const NO_ADDRESS: Readonly<Record<StoredFile['visibility'], string>> = {
  public: 'none: the bucket has no public URL',
  attached: 'none: it is read by links, by those who may read its document',
  private: 'none: it is read by links, with the secret key',
};

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
      <Preview file={file} url={previewAddress(file.url)} />
      <Pairs
        of={{
          Type: file.contentType,
          Size: bytes(file.size),
          Stored: file.provider === 'internal' ? 'at the service' : 'in the project’s bucket',
          'Uploaded by':
            uploadedBy === null ? (
              'the project'
            ) : (
              <a href={linkTo(['p', place.value.parts[1] ?? '', 'users'], { open: uploadedBy })}>{uploadedBy}</a>
            ),
          Created: moment(file.createdAt),
          Path: (
            <>
              <code>{file.path}</code> <Copy text={file.path} what="Path" />
            </>
          ),
          URL:
            address === null ? (
              NO_ADDRESS[file.visibility]
            ) : (
              <>
                <a href={address} target="_blank" rel="noopener noreferrer">
                  {address}
                </a>{' '}
                <Copy text={address} what="URL" />
              </>
            ),
        }}
      />
      {address !== null && <p class="muted">Anyone with the URL can read the file.</p>}
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
