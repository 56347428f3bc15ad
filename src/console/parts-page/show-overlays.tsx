/** @jsxImportSource . */
import { kit } from './given.js';
import { Live, Opens } from './live.js';
import { LONG, nothing, refuse } from './samples.js';

/** What lies over the page when somebody opens it, in the theme of the page. */
export function Overlays() {
  return (
    <p class="row">
      <Opens
        name="A dialog"
        show={(close) => (
          <kit.Dialog title="A dialog" onClose={close}>
            <p>A question over the page.</p>
          </kit.Dialog>
        )}
      />
      <Opens
        name="A wide dialog"
        show={(close) => (
          <kit.Dialog title="A wide dialog" wide onClose={close}>
            <pre>{LONG}</pre>
          </kit.Dialog>
        )}
      />
      <Opens
        name="What cannot be undone"
        show={(close) => (
          <kit.Confirm
            title="What cannot be undone"
            text="All of it goes."
            name="shop"
            action="Go on"
            onConfirm={() => Promise.resolve().then(close)}
            onClose={close}
          />
        )}
      />
      <Opens name="The password again" show={(close) => <kit.PasswordAgain onDone={close} />} />
      <Opens name="A secret" show={(close) => <kit.Secret what="Key" value={LONG} onClose={close} />} />
      <Opens
        name="A drawer"
        show={(close) => (
          <kit.Drawer title="A drawer" onClose={close}>
            <p>One record beside its list.</p>
          </kit.Drawer>
        )}
      />
      <Opens
        name="A drawer with a form"
        show={(close) => (
          <Live
            first="shop"
            show={(value, set) => (
              <kit.DrawerForm
                title="A drawer with a form"
                action="Go on"
                isDirty={value !== 'shop'}
                busy={false}
                error={refuse()}
                commands={{ cli: 'bsvc project list', path: kit.pathTo('/api/projects') }}
                onSubmit={close}
                onClose={close}
              >
                <kit.Field label="Name" value={value} onText={set} />
              </kit.DrawerForm>
            )}
          />
        )}
      />
      <button onClick={() => kit.say('It is done', { undo: nothing })}>A note</button>
      <button onClick={() => kit.say('It was refused', { isBad: true })}>A bad note</button>
    </p>
  );
}
