"""Record matching: find each dataset entry of a project in Wikidata, or say that it is not there."""
