import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below } from '../../api-paths.js';
import type { DocumentsPath } from '../../collection.js';
import { say, tellRefusal } from '../../parts/basics.js';
import { Confirm } from '../../parts/confirm.js';
import { howMany } from '../../format.js';

/** What can be done with the chosen rows. */
export function SelectionBar({
  documents,
  ids,
  isTrash,
  onDone,
  onNone,
}: {
  documents: DocumentsPath;
  ids: readonly string[];
  isTrash: boolean;
  onDone: () => void;
  onNone: () => void;
}) {
  const [isErasing, setErasing] = useState(false);
  const all = async (act: 'trash' | 'recover', chosen: readonly string[]): Promise<void> => {
    try {
      const path = act === 'trash' ? below(documents, '/trash') : below(documents, '/recover');
      const { done, refused } = await call('POST', path, { body: { ids: [...chosen] } });
      const left = refused.length > 0 ? `, ${refused.length} refused: ${refused[0]!.message}` : '';
      say(`${done.length} ${act === 'trash' ? 'moved to the trash' : 'taken back'}${left}`, {
        isBad: refused.length > 0,
        ...(done.length > 0 && { undo: () => void all(act === 'trash' ? 'recover' : 'trash', done) }),
      });
      onDone();
    } catch (error) {
      tellRefusal(error);
    }
  };
  const erase = async (): Promise<void> => {
    for (const document of ids) {
      await call('DELETE', below(documents, '/{document}', { document }), { query: { permanent: true } });
    }
    say(`${howMany(ids.length, 'document')} deleted for good`);
    onDone();
  };
  return (
    <div class="selection" role="toolbar" aria-label="Selected documents">
      <b>{ids.length} selected</b>
      {isTrash ? (
        <>
          <button onClick={() => void all('recover', ids)}>Take back</button>
          <button class="danger" onClick={() => setErasing(true)}>
            Delete for good…
          </button>
        </>
      ) : (
        <button onClick={() => void all('trash', ids)}>Move to the trash</button>
      )}
      <button class="quiet" onClick={onNone}>
        Select none
      </button>
      {isErasing && (
        <Confirm
          title={`Delete ${howMany(ids.length, 'document')} for good`}
          text="They cannot be taken back."
          name={String(ids.length)}
          action="Delete for good"
          onClose={() => setErasing(false)}
          request={erase}
        />
      )}
    </div>
  );
}
