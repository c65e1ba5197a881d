import type { DocumentReport } from "../injected/check-script.ts";

/** Maximum number of links on a check page. More links indicate a site's navigation. */
const maxLinks = 8;

/** Longest text in characters that is matched. On a longer page only title and headings are matched. */
const shortText = 400;

/** Phrases of pages that require an action. */
const demands: readonly RegExp[] = [
  /\b(?:verify|confirm|prove)(?: to us)?(?: that)? you(?:'re|’re| are)(?: really)? (?:a |not a )?(?:human|real person|robot|bot)\b/i,
  /\b(?:verify|confirm|make sure|checking if)(?: that)? you(?:'re|’re| are) not (?:a )?(?:ro)?bot\b/i,
  /^are you (?:a )?(?:human|robot|real person)\b/i,
  /\bhuman verification\b/i,
  /\bpress (?:and|&) hold\b/i,
  /\bcomplete the (?:security check|captcha)\b/i,
  /\bunusual (?:traffic|activity) from your (?:computer )?network\b/i,
  /\bpardon our interruption\b/i,
  /\b(?:bestätigen|beweisen) sie,? dass sie (?:ein mensch|kein (?:ro)?bot) sind\b/i,
  /\b(?:vérifiez|confirmez|prouvez) que vous (?:êtes (?:un )?humain|n[’']êtes pas un robot)/i,
  /\b(?:verifica|verifique|confirma|confirme|demuestra|demuestre) que (?:eres|es) (?:un )?humano\b/i,
];

/** Phrases of pages that check the visitor automatically. */
const waits: readonly RegExp[] = [
  /\bchecking (?:your browser before|if the site connection is secure)\b/i,
  /\bverifying (?:that )?you are (?:a )?human\b/i,
];

/** Returns whether a document's purpose is a human check. */
export function isAboutBeingHuman(report: DocumentReport): boolean {
  const { title, headings, text, controls, links, hasForm } = report;
  if (text === undefined || links > maxLinks || hasForm) return false;
  const lines = text.length <= shortText ? [title, ...headings, text] : [title, ...headings];
  if (says(lines, waits)) return true;
  return controls > 0 && says(lines, demands);
}

function says(lines: readonly string[], patterns: readonly RegExp[]): boolean {
  return patterns.some((pattern) => lines.some((line) => pattern.test(line)));
}
